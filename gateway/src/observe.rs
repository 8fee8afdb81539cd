//! What operators see of the traffic: metrics, a line in the log for each request, traces, and the newest requests.

mod metrics;
mod origin;
mod recent;
mod traces;
mod watched;

pub(crate) use self::metrics::{Metrics, Present, States};
pub(crate) use self::origin::Origin;
pub(crate) use self::recent::{Recent, Shown};
pub(crate) use self::traces::span;
pub use self::traces::{Traces, TracesError};
pub(crate) use self::watched::{Request, watch};
