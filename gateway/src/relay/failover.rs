//! What to try after a failed attempt: another key, another upstream, or nothing.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::failure::{AttemptFailure, FailureClass};
use crate::routing::{Plan, UpstreamAttempt};
use crate::wire::ApiError;

/// How long one of several keys rests after a 429 without `retry-after`.
const RATE_PAUSE: Duration = Duration::from_secs(5);
/// How long one of several keys rests after the upstream rejected it.
const REFUSED_PAUSE: Duration = Duration::from_mins(1);

/// Continues with another key of the same upstream if there is one. Otherwise breaks: with the failure if another upstream may
/// answer, or with the error if the request itself is at fault. `model`: for the log.
pub(super) fn after(
    failure: AttemptFailure,
    plan: &mut Plan,
    attempt: &mut UpstreamAttempt,
    model: &str,
) -> ControlFlow<Result<AttemptFailure, ApiError>> {
    let now = Instant::now();
    if !matches!(failure.class, FailureClass::Request | FailureClass::Gateway) {
        // Don't log the upstream's text, which may contain anything.
        let upstream = &*attempt.destination.provider.endpoint.name;
        tracing::warn!(upstream, model, reason = ?failure.class, "an attempt failed");
    }
    match failure.class {
        FailureClass::Request | FailureClass::Gateway => {
            attempt.succeeded(now);
            return ControlFlow::Break(Err(failure.into_error()));
        }
        FailureClass::Upstream => attempt.failed(now),
        FailureClass::Permission => {
            if plan.further_key(attempt, now) {
                return ControlFlow::Continue(());
            }
        }
        FailureClass::Key | FailureClass::RateLimit => {
            // Zero would select the same key again.
            let retry_after = failure.retry_after.filter(|time| !time.is_zero());
            let pause = match (attempt.has_one_key(), failure.class, retry_after) {
                (_, FailureClass::RateLimit, Some(retry_after)) => Some(retry_after),
                (true, ..) => None,
                (false, FailureClass::RateLimit, None) => Some(RATE_PAUSE),
                (false, _, retry_after) => Some(retry_after.unwrap_or_default().max(REFUSED_PAUSE)),
            };
            if let Some(pause) = pause {
                let below = failure.tokens_left.map_or(0, |left| plan.below(left));
                attempt.rest_key(pause, below, now);
            }
            if pause.is_some() && plan.next_key(attempt, now) {
                return ControlFlow::Continue(());
            }
            if failure.class == FailureClass::RateLimit {
                attempt.responded(now);
            }
        }
    }
    ControlFlow::Break(Ok(failure))
}
