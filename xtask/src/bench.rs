//! `cargo xtask bench`: benchmark programs, with ratios within one run. Absolute figures do not carry over to other
//! machines.

mod awake;
mod callgrind;
mod compare;
mod documents;
mod figures;
mod gateway;
mod installs;
mod measured;
mod nodes;
mod page;
mod peers;
mod picture;
mod program;
mod programs;
mod rounds;
mod rows;
mod table;

use std::path::PathBuf;

use anyhow::Result;

pub(crate) use gateway::{build_load, load, start_ours, start_stub};
pub(crate) use peers::{RunningPeer, free_port};

/// What can be measured.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Subject {
    /// Requests of the clients
    Client,
    /// Streams of the clients
    Stream,
    /// Reports
    Validate,
    /// Imports and first clients
    Start,
    /// What the gateway adds to a request
    Gateway,
    /// What requests and tasks cost one to three gateways that share a store
    Nodes,
}

impl Subject {
    /// Its name on the command line and in the markers of docs/benchmarks.md.
    fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Stream => "stream",
            Self::Validate => "validate",
            Self::Start => "start",
            Self::Gateway => "gateway",
            Self::Nodes => "nodes",
        }
    }
}

/// How a run is made.
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
#[derive(clap::Args)]
pub(crate) struct Settings {
    /// Rounds, of which the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only rows whose title has all these words
    #[arg(long, value_name = "WORD", num_args = 1..)]
    only: Vec<String>,
    /// Multiply every count, for a first look
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Measure ours at another commit beside ours here, and no peers
    #[arg(long, value_name = "COMMIT", conflicts_with_all = ["write", "peers", "guided"])]
    compare: Option<String>,
    /// Write the tables and pictures of docs/
    #[arg(long)]
    write: bool,
    /// Count instructions instead, of the programs in Rust and the validators in Python
    #[arg(long)]
    callgrind: bool,
    /// gateway: measure the gateways of other makers, too; installs them first
    #[arg(long)]
    peers: bool,
    /// gateway: keep the cores awake, by a process on each that runs where nothing else does. Cores that sleep between two
    /// requests take long to wake up on some machines, for all gateways alike
    #[arg(long)]
    awake: bool,
    /// gateway: build ours with a profile of what it does, as `cargo xtask package --release --guided` does
    #[arg(long)]
    guided: bool,
}

/// Measures one subject. `program`: builds the gateway as in the packages, with or without a profile.
pub(crate) fn run_bench(
    subject: Subject,
    settings: &Settings,
    program: fn(guided: bool) -> Result<PathBuf>,
) -> Result<()> {
    match subject {
        Subject::Gateway => gateway::run_gateway(settings, program),
        Subject::Nodes => nodes::run_nodes(),
        _ => rounds::run_rounds(subject, settings),
    }
}
