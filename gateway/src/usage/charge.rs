//! The charge for one request.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use gatewright_protocol::conversation::Usage;
use gatewright_store::{Spent, Totals};
use gatewright_system::clock::millis;
use tracing::Span;

use super::price::{Consumption, MAX_UNITS, MediaUnits, Rates, SoundLength};
use super::{Caller, LimitExceeded};

/// What one request has consumed so far. It is recorded on drop, so that a request whose client has disconnected counts, too.
#[derive(Debug)]
pub(crate) struct Charge {
    caller: Caller,
    model: Arc<str>,
    upstream: Arc<str>,
    rates: Option<Arc<Rates>>,
    media: MediaUnits,
    reported: Option<Usage>,
    estimate: Option<Usage>,
    /// The reservation from the key's budgets.
    reserved: Spent,
    /// When the head of the request arrived.
    started: Instant,
    /// Milliseconds since then: until the answer began, and until it was complete.
    first_byte_ms: Option<u64>,
    latency_ms: u64,
    complete: bool,
    failed: bool,
    is_void: bool,
    /// How many requests it is for that succeeded, and that failed, if it is for a batch.
    batch: Option<(u64, u64)>,
    /// The request's trace span, which stays open at least as long.
    span: Span,
    consumed: Consumed,
}

/// What a request consumed, once that is recorded; for those who show requests.
pub(crate) type Consumed = Arc<OnceLock<Totals>>;

impl Charge {
    /// Opens the charge for a request. `upstream`: the one that answers. `started`: when the head of the request arrived.
    pub(crate) fn new(caller: Caller, model: Arc<str>, upstream: Arc<str>, started: Instant) -> Self {
        Self {
            caller,
            model,
            upstream,
            rates: None,
            media: MediaUnits::default(),
            reported: None,
            estimate: None,
            reserved: Spent::default(),
            started,
            first_byte_ms: None,
            latency_ms: 0,
            complete: false,
            failed: false,
            is_void: false,
            batch: None,
            span: Span::current(),
            consumed: Consumed::default(),
        }
    }

    /// Sets where to show what is recorded.
    pub(crate) fn shown_in(mut self, consumed: &Consumed) -> Self {
        self.consumed = Arc::clone(consumed);
        self
    }

    /// Sets the prices of the upstream; without them, the request is recorded as unpriced.
    pub(crate) fn priced(mut self, rates: Option<Arc<Rates>>) -> Self {
        self.rates = rates;
        self
    }

    /// It is for a batch of requests, whose number is set later. Unless it is completed, nothing is recorded: another process does that.
    pub(crate) fn for_batch(mut self) -> Self {
        self.batch = Some((0, 0));
        self.is_void = true;
        self
    }

    /// Sets how many requests of the batch have succeeded, and how many have failed.
    pub(crate) fn set_requests(&mut self, succeeded: u64, failed: u64) {
        self.batch = Some((succeeded.min(MAX_UNITS), failed.min(MAX_UNITS)));
    }

    /// Reserves what the request is expected to consume from the budgets of its key, at the upstream's prices; a batch only if they
    /// cover all of it. Errors: they are
    /// used up, or requests in progress may use them up; nothing is recorded.
    pub(crate) fn reserve(mut self, expected: Usage, media: MediaUnits) -> Result<Self, LimitExceeded> {
        let count = |tokens: Option<u64>| tokens.unwrap_or(0).min(MAX_UNITS);
        let consumption = Consumption { usage: expected, media, batch: self.batch_size() };
        let cost = self.rates.as_ref().and_then(|rates| rates.cost(&consumption)).unwrap_or(0);
        let expected = Spent { tokens: count(expected.input) + count(expected.output), cost };
        match self.caller.reserve(expected, self.batch.is_some()) {
            Ok(reserved) => {
                self.reserved = reserved;
                Ok(self)
            }
            Err(exceeded) => {
                self.void();
                Err(exceeded)
            }
        }
    }

    /// Sets the usage that the upstream reports; the last report counts.
    pub(crate) fn set_usage(&mut self, usage: Usage) {
        self.reported = Some(usage);
    }

    /// Sets what the request consumed besides tokens; the last value counts.
    pub(crate) fn set_media(&mut self, media: MediaUnits) {
        self.media = media;
    }

    /// Sets the gateway's estimate of the usage; the last one counts. It is used for what the upstream doesn't report, and for the
    /// output of an answer that ended early, which the upstream reported at its start.
    pub(crate) fn estimated(&mut self, usage: Usage) {
        self.estimate = Some(usage);
    }

    /// The upstream rejected the request or failed: nothing is recorded.
    pub(crate) fn void(mut self) {
        self.is_void = true;
    }

    /// The answer begins.
    pub(crate) fn begin(&mut self) {
        self.first_byte_ms = Some(millis(self.started.elapsed()));
    }

    /// The answer was sent completely, or will be: nothing of it is missing.
    pub(crate) fn complete(&mut self) {
        self.is_void = false;
        self.complete = true;
        self.latency_ms = millis(self.started.elapsed());
    }

    /// The answer ended in an error.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    /// How many requests the batch has that it is for.
    fn batch_size(&self) -> Option<u64> {
        self.batch.map(|(succeeded, failed)| (succeeded + failed).max(1))
    }

    /// The usage to record, and whether any of it is an estimate.
    fn usage(&self) -> (Usage, bool) {
        let estimate = self.estimate.unwrap_or_default();
        let Some(reported) = self.reported else { return (estimate, true) };
        let output = match (reported.output, estimate.output) {
            (Some(reported), Some(estimate)) if !self.complete => Some(reported.max(estimate)),
            (reported, estimate) => reported.or(estimate),
        };
        let usage = Usage { input: reported.input.or(estimate.input), output, ..reported };
        (usage, usage != reported)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.is_void {
            return self.caller.release(self.reserved);
        }
        let (usage, estimated) = self.usage();
        let count = |tokens: Option<u64>| tokens.unwrap_or(0).min(MAX_UNITS);
        let consumption = Consumption { usage, media: self.media, batch: self.batch_size() };
        let is_estimated_length = matches!(self.media.sound, SoundLength::Estimated(_))
            && self.rates.as_ref().is_some_and(|rates| rates.charges_sounds());
        let cost = match &self.rates {
            Some(rates) => rates.cost(&consumption),
            // A request that consumes nothing costs nothing, whatever the prices.
            None => consumption.is_nothing().then_some(0),
        };
        let is_timed = self.complete && self.batch.is_none();
        let totals = Totals {
            requests: self.batch.map_or(1, |(succeeded, _)| succeeded),
            complete: self.batch.map_or(self.complete.into(), |(succeeded, _)| succeeded),
            estimated: (estimated || is_estimated_length).into(),
            input: count(usage.input),
            cached: count(usage.cached),
            cache_write: count(usage.cache_write),
            output: count(usage.output),
            reasoning: count(usage.reasoning),
            cost: cost.unwrap_or(0),
            unpriced: cost.is_none().into(),
            failed: self.batch.map_or(self.failed.into(), |(_, failed)| failed),
            // Of a batch, and of an answer that doesn't complete, the time is unknown.
            timed: is_timed.into(),
            first_byte_ms: if is_timed { self.first_byte_ms.unwrap_or(self.latency_ms) } else { 0 },
            latency_ms: if self.batch.is_none() { self.latency_ms } else { 0 },
        };
        // Signed: traces have no unsigned integers.
        self.span.record("gen_ai.usage.input_tokens", totals.input.cast_signed());
        self.span.record("gen_ai.usage.output_tokens", totals.output.cast_signed());
        for (name, tokens) in [
            ("gen_ai.usage.cache_read.input_tokens", totals.cached),
            ("gen_ai.usage.cache_creation.input_tokens", totals.cache_write),
            ("gen_ai.usage.reasoning.output_tokens", totals.reasoning),
        ] {
            if tokens > 0 {
                self.span.record(name, tokens.cast_signed());
            }
        }
        _ = self.consumed.set(totals);
        self.caller.settle(&self.model, &self.upstream, &totals, self.reserved);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::usage::Ledger;
    use gatewright_config::ModelPrice;

    fn usage(input: u64, output: u64) -> Usage {
        Usage { input: Some(input), output: Some(output), ..Usage::default() }
    }

    fn one_image() -> MediaUnits {
        MediaUnits { images: 1, ..MediaUnits::default() }
    }

    /// The record of a charge.
    fn recorded(charged: impl FnOnce(&mut Charge)) -> Totals {
        recorded_at(Some(&ModelPrice::new(1.0, 10.0)), charged)
    }

    fn recorded_at(price: Option<&ModelPrice>, charged: impl FnOnce(&mut Charge)) -> Totals {
        let ledger = Arc::<Ledger>::default();
        let caller = Caller::unlimited("k", &ledger);
        let started = Instant::now().checked_sub(Duration::from_secs(2)).expect("the machine runs longer");
        let mut charge =
            Charge::new(caller, "m".into(), "u".into(), started).priced(price.map(Rates::new).map(Arc::new));
        charged(&mut charge);
        drop(charge);
        let rows = ledger.take();
        assert_eq!(rows.len(), 1);
        rows.into_values().next().expect("a row")
    }

    #[test]
    fn charge_with_reported_usage_is_recorded_on_drop() {
        let totals = recorded(|charge| {
            charge.estimated(usage(1, 1));
            charge.set_usage(usage(100, 20));
            charge.complete();
        });
        let expected = Totals {
            requests: 1,
            complete: 1,
            input: 100,
            output: 20,
            // 100 × 1 + 20 × 10 millionths.
            cost: 300_000,
            timed: 1,
            first_byte_ms: totals.first_byte_ms,
            latency_ms: totals.latency_ms,
            ..Totals::default()
        };
        assert_eq!(totals, expected);
    }

    #[test]
    fn only_complete_answers_are_timed_since_the_head_of_their_request() {
        let of = |totals: Totals| [totals.complete, totals.failed, totals.timed];
        let whole = recorded(Charge::complete);
        assert_eq!(of(whole), [1, 0, 1]);
        assert!(whole.latency_ms >= 2000 && whole.first_byte_ms == whole.latency_ms, "{whole:?}");
        let streamed = recorded(|charge| {
            charge.begin();
            charge.complete();
        });
        assert!((2000..=streamed.latency_ms).contains(&streamed.first_byte_ms), "{streamed:?}");
        for failed in [false, true] {
            let totals = recorded(|charge| {
                charge.begin();
                if failed {
                    charge.fail();
                }
            });
            assert_eq!(of(totals), [0, u64::from(failed), 0]);
            assert_eq!([totals.first_byte_ms, totals.latency_ms], [0, 0]);
        }
    }

    #[test]
    fn unreported_usage_is_estimated_and_marked() {
        let nothing = recorded(|_| ());
        assert_eq!((nothing.requests, nothing.estimated, nothing.input), (1, 1, 0));
        let all = recorded(|charge| charge.estimated(usage(7, 3)));
        assert_eq!((all.estimated, all.complete, all.input, all.output), (1, 0, 7, 3));
        // A stream that reports the input at its start, aborted before it reports the output.
        let aborted = recorded(|charge| {
            charge.set_usage(usage(100, 1));
            charge.estimated(usage(80, 30));
        });
        assert_eq!((aborted.estimated, aborted.input, aborted.output), (1, 100, 30));
    }

    #[test]
    fn reported_usage_is_bounded() {
        let totals = recorded(|charge| charge.set_usage(usage(u64::MAX, u64::MAX)));
        let cost = 11_000 * 1_000_000_000;
        assert_eq!((totals.input, totals.output, totals.cost), (MAX_UNITS, MAX_UNITS, cost));
    }

    #[test]
    fn unpriced_requests_are_counted_unless_they_consume_nothing() {
        let of = |price: Option<&ModelPrice>, charged: fn(&mut Charge)| {
            let totals = recorded_at(price, charged);
            (totals.cost, totals.unpriced)
        };
        assert_eq!(of(None, |charge| charge.set_usage(usage(5, 1))), (0, 1));
        assert_eq!(of(None, |charge| charge.set_usage(Usage::default())), (0, 0));
        assert_eq!(of(None, |charge| charge.set_media(one_image())), (0, 1));
        let (tokens, free) = (ModelPrice::new(1.0, 10.0), ModelPrice::new(0.0, 0.0));
        assert_eq!(of(Some(&tokens), |charge| charge.set_usage(usage(5, 1))), (15_000, 0));
        assert_eq!(of(Some(&free), |charge| charge.set_usage(usage(5, 1))), (0, 0), "free is a price");
        let draw = |charge: &mut Charge| {
            charge.set_usage(Usage::default());
            charge.set_media(one_image());
        };
        assert_eq!(of(Some(&tokens), draw), (0, 1));
        assert_eq!(of(Some(&ModelPrice { image: Some(0.04), ..free }), draw), (40_000_000, 0));
        let film = |charge: &mut Charge| {
            charge.set_usage(Usage::default());
            charge.set_media(MediaUnits { video_seconds: 8, ..MediaUnits::default() });
        };
        assert_eq!(
            of(Some(&ModelPrice { video_second: Some(0.1), ..ModelPrice::default() }), film),
            (800_000_000, 0)
        );
    }
}
