//! Probes a gateway that speaks the responses protocol and creates the compatibility report: six checks
//! over raw HTTP and with a coding agent, without retries, and with evidence for each.
//!
//! ```no_run
//! use gatewright_checkkit::{ApiKey, CancellationToken, CheckKit, Options};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let kit = CheckKit::new(Options::new("http://127.0.0.1:8080"), &ApiKey::new("the key")?)?;
//! let finished = kit.run(&|_progress| {}, &CancellationToken::new()).await;
//! println!("{}", finished.report.overall_status);
//! # Ok(())
//! # }
//! ```
//!
//! `options` validates the options, `plan` lists the cells, `run` executes them, and `checks` has one file per check.
//! `exchange` speaks HTTP, and `agent` runs the coding agent. `cell` collects the findings of a check, and `redaction`
//! removes the secrets from them. `protocols` has additional checks of the other protocols, which are not in the report.
//!
//! It has no stable interface: it is a part of the program `gatewright` (`gatewright check`), which is what people
//! use.

mod agent;
mod background;
mod cell;
mod checks;
mod done_items;
mod evidence;
mod exchange;
mod failure;
mod generated;
mod listed_model;
mod member;
mod options;
mod plan;
mod probed_protocol;
mod protocols;
mod redaction;
mod response_object;
mod run;
mod runtime;
mod tls;

pub use tokio_util::sync::CancellationToken;

pub use crate::background::{BackgroundRun, Next};
pub use crate::evidence::write_evidence;
pub use crate::exchange::MAX_BODY_BYTES;
pub use crate::failure::Category;
pub use crate::generated::options::{
    AGENT_PROGRAM_VARIABLE, DEFAULT_AGENT_TIMEOUT_MS, DEFAULT_BASE_PATH, DEFAULT_TIMEOUT_MS, Options,
};
pub use crate::options::InvalidOptions;
pub use crate::plan::PlannedCell;
pub use crate::probed_protocol::ProbedProtocol;
pub use crate::protocols::write_protocols;
pub use crate::run::{CheckKit, MAX_PARALLEL, Progress, RunResult};
pub use gatewright::ApiKey;
