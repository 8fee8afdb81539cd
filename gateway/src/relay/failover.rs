//! What follows on an attempt that failed: another key, another upstream, or the end.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::failure::{Fault, Verdict};
use crate::routing::{Plan, UpstreamAttempt};
use crate::wire::ApiError;

/// How long a key of several is left alone after a 429 without a time.
const RATE_PAUSE: Duration = Duration::from_secs(5);
/// How long a key of several is left alone that the upstream refused.
const REFUSED_PAUSE: Duration = Duration::from_mins(1);

/// Goes on with the same upstream, which the claim has another key of. Else the attempt was its last one: another upstream
/// may do, or the error is the request's own. `model`: for the log.
pub(super) fn after(
    fault: Fault,
    plan: &mut Plan,
    attempt: &mut UpstreamAttempt,
    model: &str,
) -> ControlFlow<Result<Fault, ApiError>> {
    let now = Instant::now();
    if !matches!(fault.verdict, Verdict::Request | Verdict::Gateway) {
        // Without the upstream's words, which may hold anything.
        let upstream = &*attempt.destination.provider.endpoint.name;
        tracing::warn!(upstream, model, reason = ?fault.verdict, "an attempt failed");
    }
    match fault.verdict {
        Verdict::Request | Verdict::Gateway => {
            attempt.succeeded(now);
            return ControlFlow::Break(Err(fault.into_error()));
        }
        Verdict::Upstream => attempt.failed(now),
        Verdict::Permission => {
            if plan.further_key(attempt, now) {
                return ControlFlow::Continue(());
            }
        }
        Verdict::Key | Verdict::RateLimit => {
            // At once is no time: the same key would be chosen again.
            let told = fault.retry_after.filter(|time| !time.is_zero());
            let pause = match (attempt.has_one_key(), fault.verdict, told) {
                (_, Verdict::RateLimit, Some(told)) => Some(told),
                (true, ..) => None,
                (false, Verdict::RateLimit, None) => Some(RATE_PAUSE),
                (false, _, told) => Some(told.unwrap_or_default().max(REFUSED_PAUSE)),
            };
            if let Some(pause) = pause {
                attempt.key_waits(pause, now);
            }
            if pause.is_some() && plan.next_key(attempt, now) {
                return ControlFlow::Continue(());
            }
            if fault.verdict == Verdict::RateLimit {
                // It works: a limit is no breakdown.
                attempt.succeeded(now);
            }
        }
    }
    ControlFlow::Break(Ok(fault))
}
