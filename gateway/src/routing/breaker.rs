//! Keeps requests away from a failing upstream: opens on the failure rate in a window, and after a pause lets one request through
//! to probe whether it works again.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Number of slices in the sliding window; the oldest is dropped as a whole.
const SLICES: u32 = 6;
/// Length of a slice, in seconds.
const SLICE_S: u64 = 5;
/// With fewer failures in the window, the breaker stays closed.
const LEAST_FAILURES: u32 = 5;
/// First pause of an open breaker; it doubles with each failed probe.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// The breaker of an upstream and model.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<BreakerState>);

#[derive(Debug, Default)]
struct BreakerState {
    phase: Phase,
    slices: [Slice; SLICES as usize],
    /// Start of the very first slice.
    started: Option<Instant>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Slice {
    number: u64,
    successes: u32,
    failures: u32,
}

#[derive(Debug, Default, Clone, Copy)]
enum Phase {
    #[default]
    Closed,
    Open {
        until: Instant,
        pause: Duration,
    },
    /// A probe is in progress.
    HalfOpen {
        pause: Duration,
    },
}

/// How a breaker treats the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Condition {
    /// Lets it through.
    Closed,
    /// Lets one probe through; it may be in progress.
    HalfOpen,
    /// Rejects it.
    Open,
}

impl Condition {
    /// Its value in metrics.
    pub(crate) fn number(self) -> f64 {
        match self {
            Self::Closed => 0.0,
            Self::HalfOpen => 1.0,
            Self::Open => 2.0,
        }
    }
}

/// Permission to send a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BreakerPermit {
    Regular,
    /// The one request that decides whether the breaker closes.
    Probe,
}

impl Breaker {
    fn state(&self) -> MutexGuard<'_, BreakerState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn condition(&self, now: Instant) -> Condition {
        match self.state().phase {
            Phase::Closed => Condition::Closed,
            Phase::Open { until, .. } if now < until => Condition::Open,
            Phase::Open { .. } | Phase::HalfOpen { .. } => Condition::HalfOpen,
        }
    }

    /// Asks for permission to send a request. Errors: when to ask again.
    pub(crate) fn ask(&self, now: Instant) -> Result<BreakerPermit, Instant> {
        let mut state = self.state();
        match state.phase {
            Phase::Closed => Ok(BreakerPermit::Regular),
            Phase::Open { until, pause } if now >= until => {
                state.phase = Phase::HalfOpen { pause };
                Ok(BreakerPermit::Probe)
            }
            Phase::Open { until, .. } => Err(until),
            Phase::HalfOpen { .. } => Err(now + Duration::from_secs(1)),
        }
    }

    pub(crate) fn succeeded(&self, pass: BreakerPermit, now: Instant) {
        let mut state = self.state();
        if pass == BreakerPermit::Probe {
            *state = BreakerState::default();
        }
        state.slice(now).successes += 1;
    }

    pub(crate) fn failed(&self, pass: BreakerPermit, now: Instant) {
        let mut state = self.state();
        state.slice(now).failures += 1;
        match (pass, state.phase) {
            (BreakerPermit::Probe, Phase::HalfOpen { pause }) => {
                let pause = pause.saturating_mul(2).min(MAX_PAUSE);
                state.phase = Phase::Open { until: now + pause, pause };
            }
            (BreakerPermit::Regular, Phase::Closed) if state.fails_often(now) => {
                state.phase = Phase::Open { until: now + FIRST_PAUSE, pause: FIRST_PAUSE };
            }
            // A request sent before the breaker opened.
            _ => {}
        }
    }

    /// The request ended without revealing anything about the upstream, for example because its client disconnected.
    pub(crate) fn abandoned(&self, pass: BreakerPermit, now: Instant) {
        let mut state = self.state();
        if let (BreakerPermit::Probe, Phase::HalfOpen { pause }) = (pass, state.phase) {
            state.phase = Phase::Open { until: now, pause };
        }
    }
}

impl BreakerState {
    /// The current slice of the window.
    fn slice(&mut self, now: Instant) -> &mut Slice {
        let number = self.number(now);
        let slice = &mut self.slices[usize::try_from(number % u64::from(SLICES)).unwrap_or(0)];
        if slice.number != number {
            *slice = Slice { number, ..Slice::default() };
        }
        slice
    }

    fn number(&mut self, now: Instant) -> u64 {
        let started = *self.started.get_or_insert(now);
        now.saturating_duration_since(started).as_secs() / SLICE_S
    }

    /// Whether at least half of the requests in the window failed, and enough of them.
    fn fails_often(&mut self, now: Instant) -> bool {
        let number = self.number(now);
        let recent = |slice: &&Slice| slice.number + u64::from(SLICES) > number;
        let (mut successes, mut failures) = (0, 0);
        for slice in self.slices.iter().filter(recent) {
            successes += slice.successes;
            failures += slice.failures;
        }
        failures >= LEAST_FAILURES && failures >= successes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(breaker: &Breaker, times: u32, now: Instant) {
        for _ in 0..times {
            breaker.failed(BreakerPermit::Regular, now);
        }
    }

    #[test]
    fn breaker_opens_on_the_failure_rate() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        fail(&breaker, LEAST_FAILURES - 1, now);
        assert_eq!(breaker.ask(now), Ok(BreakerPermit::Regular), "too few failures");
        fail(&breaker, 1, now);
        assert_eq!(breaker.ask(now), Err(now + FIRST_PAUSE));

        let busy = Breaker::default();
        for _ in 0..20 {
            busy.succeeded(BreakerPermit::Regular, now);
        }
        fail(&busy, 19, now);
        assert_eq!(busy.ask(now), Ok(BreakerPermit::Regular), "more than half succeeded");
        fail(&busy, 1, now);
        assert!(busy.ask(now).is_err());
    }

    /// The length of the window.
    const WINDOW: Duration = Duration::from_secs(SLICES as u64 * SLICE_S);

    #[test]
    fn failures_before_the_window_do_not_count() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        fail(&breaker, LEAST_FAILURES - 1, now);
        fail(&breaker, 1, now + WINDOW + Duration::from_secs(1));
        assert_eq!(breaker.ask(now + WINDOW), Ok(BreakerPermit::Regular));
    }

    #[test]
    fn single_probe_closes_or_reopens_the_breaker() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        fail(&breaker, LEAST_FAILURES, now);
        let later = now + FIRST_PAUSE;
        assert_eq!(breaker.ask(later), Ok(BreakerPermit::Probe));
        assert!(breaker.ask(later).is_err(), "one probe at a time");
        breaker.failed(BreakerPermit::Probe, later);
        assert_eq!(breaker.ask(later), Err(later + 2 * FIRST_PAUSE), "the pause doubles");
        let later = later + 2 * FIRST_PAUSE;
        assert_eq!(breaker.ask(later), Ok(BreakerPermit::Probe));
        breaker.abandoned(BreakerPermit::Probe, later);
        assert_eq!(breaker.ask(later), Ok(BreakerPermit::Probe), "another probe decides");
        breaker.succeeded(BreakerPermit::Probe, later);
        assert_eq!(breaker.ask(later), Ok(BreakerPermit::Regular));
        fail(&breaker, LEAST_FAILURES - 1, later);
        assert_eq!(breaker.ask(later), Ok(BreakerPermit::Regular), "old failures are forgotten");
    }

    #[test]
    fn condition_predicts_the_next_request() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        assert_eq!(breaker.condition(now), Condition::Closed);
        fail(&breaker, LEAST_FAILURES, now);
        assert_eq!(breaker.condition(now), Condition::Open);
        let later = now + FIRST_PAUSE;
        assert_eq!(breaker.condition(later), Condition::HalfOpen, "the next request is the probe");
        assert_eq!(breaker.ask(later), Ok(BreakerPermit::Probe));
        assert_eq!(breaker.condition(later), Condition::HalfOpen);
        breaker.failed(BreakerPermit::Probe, later);
        assert_eq!(breaker.condition(later), Condition::Open);
    }

    #[test]
    fn late_failures_do_not_extend_the_pause() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        fail(&breaker, LEAST_FAILURES, now);
        fail(&breaker, 10, now + Duration::from_secs(4));
        assert_eq!(breaker.ask(now + FIRST_PAUSE), Ok(BreakerPermit::Probe));
    }
}
