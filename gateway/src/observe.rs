//! What operators see of the traffic: metrics, a line in the log for each request, and traces.

mod metrics;
mod traces;
mod watched;

pub(crate) use self::metrics::{Metrics, Present, States};
pub(crate) use self::traces::span;
pub use self::traces::{Traces, TracesError};
pub(crate) use self::watched::{Origin, Request, watch};
