//! Shows operators the traffic: metrics, a log line for each request, traces, and the newest requests.

mod access_log;
mod attempts;
mod content;
mod metrics;
mod origin;
mod provider;
mod recent;
mod response_inspector;
mod tally;
mod traces;

pub(crate) use self::access_log::{LoggedRequest, watch};
pub(crate) use self::attempts::{Attempts, Outcome};
pub(crate) use self::content::ContentRecord;
pub(crate) use self::metrics::{GaugeGuard, Metrics, States};
pub(crate) use self::origin::Origin;
pub(crate) use self::provider::provider_name;
pub(crate) use self::recent::{Recent, RecentEntry};
pub(crate) use self::tally::{Tally, TallyGuard};
pub use self::traces::{Traces, TracesError};
pub(crate) use self::traces::{attempt_span, current_span, span, trace_headers};
