//! The account of one request, and what it costs.

use std::sync::Arc;

use tracing::Span;

use super::{Caller, Exceeded, Spent, Totals};
use crate::conversation::Usage;
use crate::spent::billionths;

/// Prices for a million tokens, in the currency of the operator.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Price {
    /// Tokens read.
    pub input: f64,
    /// Tokens written.
    pub output: f64,
    /// Tokens read from a cache; as `input` where it is `None`.
    pub cached_input: Option<f64>,
    /// Tokens written to a cache; as `input` where it is `None`.
    pub cache_write: Option<f64>,
}

impl Price {
    /// Prices of tokens read and written.
    pub fn new(input: f64, output: f64) -> Self {
        Self { input, output, cached_input: None, cache_write: None }
    }

    /// In billionths of the currency.
    #[expect(clippy::cast_precision_loss, reason = "a price is no more exact than this")]
    fn of(&self, usage: &Usage) -> u64 {
        let count = |tokens: Option<u64>| tokens.unwrap_or(0);
        let (cached, written) = (count(usage.cached), count(usage.cache_write));
        let plain = count(usage.input).saturating_sub(cached).saturating_sub(written);
        let tokens = [
            (plain, self.input),
            (cached, self.cached_input.unwrap_or(self.input)),
            (written, self.cache_write.unwrap_or(self.input)),
            (count(usage.output), self.output),
        ];
        billionths(tokens.iter().map(|&(count, price)| count as f64 * price).sum::<f64>() / 1e6)
    }
}

/// Most tokens of a kind that one request takes. What an upstream tells is not trusted: sums must not overflow the store.
const MOST_TOKENS: u64 = 1_000_000_000;
/// Most that one request costs, in billionths: a million of the currency.
const MOST_COST: u64 = 1_000_000_000_000_000;

/// What one request took so far. It is recorded when it is dropped, so that the usage of a request whose client has gone
/// counts, too.
#[derive(Debug)]
pub(crate) struct Charge {
    caller: Caller,
    model: Arc<str>,
    upstream: Arc<str>,
    price: Option<Price>,
    told: Option<Usage>,
    estimate: Option<Usage>,
    /// What is reserved of the budgets of the key.
    reserved: Spent,
    complete: bool,
    is_void: bool,
    /// The span of the request in traces, which is open at least as long.
    span: Span,
}

impl Charge {
    /// Opens the account of a request. `upstream`: the one that answers.
    pub(crate) fn new(caller: Caller, model: Arc<str>, upstream: Arc<str>) -> Self {
        Self {
            caller,
            model,
            upstream,
            price: None,
            told: None,
            estimate: None,
            reserved: Spent::default(),
            complete: false,
            is_void: false,
            span: Span::current(),
        }
    }

    /// Sets the prices of the upstream; without them, the request costs nothing.
    pub(crate) fn priced(mut self, price: Option<Price>) -> Self {
        self.price = price;
        self
    }

    /// Reserves what the request is expected to take of the budgets of its key, at the prices of the upstream. Errors:
    /// they are used up, or the requests in progress may use them up; nothing is recorded.
    pub(crate) fn reserve(mut self, expected: Usage) -> Result<Self, Exceeded> {
        let count = |tokens: Option<u64>| tokens.unwrap_or(0).min(MOST_TOKENS);
        let cost = self.price.map_or(0, |price| price.of(&expected)).min(MOST_COST);
        let expected = Spent { tokens: count(expected.input) + count(expected.output), cost };
        match self.caller.reserve(expected) {
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

    /// Sets the usage as the upstream tells it; the last one counts.
    pub(crate) fn told(&mut self, usage: Usage) {
        self.told = Some(usage);
    }

    /// Sets the usage as the gateway estimates it; the last one counts. It is used for what the upstream does not tell,
    /// and for the output of an answer that ended early, which the upstream told at its beginning.
    pub(crate) fn estimated(&mut self, usage: Usage) {
        self.estimate = Some(usage);
    }

    /// The upstream refused or failed: nothing is recorded.
    pub(crate) fn void(mut self) {
        self.is_void = true;
    }

    /// The answer was sent whole.
    pub(crate) fn complete(&mut self) {
        self.complete = true;
    }

    /// The usage to record, and whether any of it is an estimate.
    fn usage(&self) -> (Usage, bool) {
        let estimate = self.estimate.unwrap_or_default();
        let Some(told) = self.told else { return (estimate, true) };
        let output = match (told.output, estimate.output) {
            (Some(told), Some(estimate)) if !self.complete => Some(told.max(estimate)),
            (told, estimate) => told.or(estimate),
        };
        let usage = Usage { input: told.input.or(estimate.input), output, ..told };
        (usage, usage != told)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.is_void {
            return self.caller.release(self.reserved);
        }
        let (usage, estimated) = self.usage();
        let count = |tokens: Option<u64>| tokens.unwrap_or(0).min(MOST_TOKENS);
        let totals = Totals {
            requests: 1,
            complete: self.complete.into(),
            estimated: estimated.into(),
            input: count(usage.input),
            cached: count(usage.cached),
            cache_write: count(usage.cache_write),
            output: count(usage.output),
            reasoning: count(usage.reasoning),
            cost: self.price.map_or(0, |price| price.of(&usage)).min(MOST_COST),
        };
        // Signed: traces have no other numbers.
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
        self.caller.settle(&self.model, &self.upstream, &totals, self.reserved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::Ledger;

    fn usage(input: u64, output: u64) -> Usage {
        Usage { input: Some(input), output: Some(output), ..Usage::default() }
    }

    /// What is recorded of a charge.
    fn recorded(charged: impl FnOnce(&mut Charge)) -> Totals {
        let ledger = Arc::<Ledger>::default();
        let mut charge = Charge::new(Caller::unlimited("k", &ledger), "m".into(), "u".into())
            .priced(Some(Price::new(1.0, 10.0)));
        charged(&mut charge);
        drop(charge);
        let rows = ledger.take();
        assert_eq!(rows.len(), 1);
        rows.into_values().next().expect("a row")
    }

    #[test]
    fn a_charge_is_recorded_when_it_is_dropped_as_the_upstream_told_it() {
        let totals = recorded(|charge| {
            charge.estimated(usage(1, 1));
            charge.told(usage(100, 20));
            charge.complete();
        });
        let expected = Totals {
            requests: 1,
            complete: 1,
            input: 100,
            output: 20,
            // 100 × 1 + 20 × 10 millionths.
            cost: 300_000,
            ..Totals::default()
        };
        assert_eq!(totals, expected);
    }

    #[test]
    fn what_the_upstream_did_not_tell_is_estimated_and_marked_so() {
        let nothing = recorded(|_| ());
        assert_eq!((nothing.requests, nothing.estimated, nothing.input), (1, 1, 0));
        let all = recorded(|charge| charge.estimated(usage(7, 3)));
        assert_eq!((all.estimated, all.complete, all.input, all.output), (1, 0, 7, 3));
        // A stream that tells the input at its beginning, and is left before it tells the output.
        let aborted = recorded(|charge| {
            charge.told(usage(100, 1));
            charge.estimated(usage(80, 30));
        });
        assert_eq!((aborted.estimated, aborted.input, aborted.output), (1, 100, 30));
    }

    #[test]
    fn what_an_upstream_tells_is_bounded() {
        let totals = recorded(|charge| charge.told(usage(u64::MAX, u64::MAX)));
        assert_eq!((totals.input, totals.output, totals.cost), (MOST_TOKENS, MOST_TOKENS, MOST_COST));
    }

    #[test]
    fn tokens_of_a_cache_have_their_own_price() {
        let usage = Usage { cached: Some(40), cache_write: Some(10), ..usage(100, 1) };
        let mut price = Price::new(1.0, 0.0);
        assert_eq!(price.of(&usage), 100_000);
        (price.cached_input, price.cache_write) = (Some(0.1), Some(2.0));
        assert_eq!(price.of(&usage), 50_000 + 4_000 + 20_000);
    }
}
