//! What operators see of the traffic: metrics, a line in the log for each request, traces, and the newest requests.

mod attempts;
mod metrics;
mod origin;
mod provider;
mod recent;
mod said;
mod tally;
mod traces;
mod watched;

pub(crate) use self::attempts::{Attempts, Outcome};
pub(crate) use self::metrics::{Metrics, Present, States};
pub(crate) use self::origin::Origin;
pub(crate) use self::provider::provider_name;
pub(crate) use self::recent::{Recent, Shown};
pub(crate) use self::tally::{Counted, Tally};
pub use self::traces::{Traces, TracesError};
pub(crate) use self::traces::{attempt_span, current_span, span, trace_headers};
pub(crate) use self::watched::{Request, watch};
