//! Probes a gateway that speaks the responses protocol and makes the compatibility report of section 2.12: six checks
//! over raw HTTP and an agent's program, with no retry, and evidence for each.
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
//! `options` holds what a run is told to the bounds of the section, `plan` lists the cells, `run` goes through them,
//! `checks` has one file per check. `exchange` is the HTTP of it, `agent` the program; `cell` gathers what a check
//! finds, and `redaction` takes the secrets out of it before anybody sees it.

mod agent;
mod background;
mod cell;
mod checks;
mod done_items;
mod exchange;
mod failure;
mod key;
mod options;
mod plan;
mod reading;
mod redaction;
mod response_object;
mod run;
mod tls;
mod write;

pub use tokio_util::sync::CancellationToken;

pub use crate::background::{BackgroundRun, Next};
pub use crate::exchange::MAX_BODY_BYTES;
pub use crate::failure::Category;
pub use crate::key::ApiKey;
pub use crate::options::{
    AGENT_PROGRAM_VARIABLE, DEFAULT_AGENT_TIMEOUT_MS, DEFAULT_BASE_PATH, DEFAULT_TIMEOUT_MS, Options, Refused,
};
pub use crate::plan::PlannedCell;
pub use crate::run::{CheckKit, Finished, MAX_PARALLEL, Progress};
pub use crate::write::{check_place, same_place, write_evidence, write_file};
