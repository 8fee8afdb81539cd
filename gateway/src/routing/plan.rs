//! The attempts of one request: which destination comes next, and the permits needed to use it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gatewright_protocol::conversation::Protocol;

use super::breaker::BreakerPermit;
use super::keys::{Rest, SelectedKey};
use super::load::Permit;
use super::{Destination, ModelRoute};

/// Maximum number of attempts of a request, over all destinations and keys.
const MAX_ATTEMPTS: u32 = 8;

/// The destinations of a request that have not been tried.
#[derive(Debug)]
pub(crate) struct Plan {
    route: Arc<ModelRoute>,
    /// The protocol that the destination must speak natively, if required.
    only: Option<Protocol>,
    /// Whether it has to count tokens.
    counts_tokens: bool,
    /// Estimated number of tokens of the request.
    tokens: u64,
    /// One bit per destination.
    tried: u64,
    /// The destination to try first, with one of its keys.
    first: Option<(usize, Option<usize>)>,
    attempts: u32,
    unavailable: Option<Unavailable>,
}

/// Why no destination is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unavailable {
    pub(crate) why: SkipReason,
    /// When the first of them becomes available again.
    pub(crate) until: Instant,
}

/// Why a destination was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SkipReason {
    /// It failed recently.
    Broken,
    /// It is at its limit of requests.
    Busy,
    /// All its keys are resting.
    KeysWait,
}

/// A destination with everything needed to use it: a key, a slot among its requests, and permission from its breaker. The outcome
/// must be reported.
#[derive(Debug)]
pub(crate) struct UpstreamAttempt {
    pub(crate) destination: Arc<Destination>,
    key: SelectedKey,
    /// Until the outcome is reported.
    pass: Option<BreakerPermit>,
    /// The slot among the requests of the upstream.
    slot: Option<Permit>,
}

impl Plan {
    pub(super) fn new(route: Arc<ModelRoute>, only: Option<Protocol>) -> Self {
        Self {
            route,
            only,
            counts_tokens: false,
            tokens: u64::MAX,
            tried: 0,
            first: None,
            attempts: 0,
            unavailable: None,
        }
    }

    /// For a request of an estimated number of tokens: upstreams whose rate limit leaves fewer are not tried.
    pub(crate) fn of_tokens(self, tokens: u64) -> Self {
        Self { tokens, ..self }
    }

    /// Only uses destinations that count tokens.
    pub(crate) fn counting_tokens(self) -> Self {
        Self { counts_tokens: true, ..self }
    }

    fn allows(&self, destination: &Destination) -> bool {
        let speaks = self.only.is_none_or(|protocol| destination.speaks(protocol));
        speaks && (!self.counts_tokens || destination.counts_tokens())
    }

    /// Starts with the destination at an upstream, and the key with this mark. `alone`: don't try any other. False if the model
    /// has no destination there.
    pub(crate) fn begin_at(&mut self, upstream: &str, mark: Option<i64>, alone: bool) -> bool {
        let mut destinations = self.route.destinations.iter();
        let place = destinations.position(|destination| {
            self.allows(destination) && *destination.provider.endpoint.name == *upstream
        });
        self.first = place.map(|index| {
            let endpoint = &self.route.destinations[index].provider.endpoint;
            (index, mark.and_then(|mark| endpoint.key_marked(mark)))
        });
        if alone {
            self.tried = place.map_or(u64::MAX, |index| !(1 << index));
        }
        place.is_some()
    }

    /// Tries the destination of an attempt once more, before the others.
    pub(crate) fn again(&mut self, attempt: &UpstreamAttempt) {
        let destinations = &self.route.destinations;
        let place = destinations.iter().position(|other| Arc::ptr_eq(other, &attempt.destination));
        if let Some(index) = place {
            self.tried &= !(1 << index);
            self.first = Some((index, attempt.key()));
        }
    }

    /// The next destination: of the lowest order, by weight. `draw`: a random number.
    pub(crate) fn next(&mut self, now: Instant, draw: u32) -> Option<UpstreamAttempt> {
        while self.attempts < MAX_ATTEMPTS
            && let Some((index, key)) = self.first.take().or_else(|| Some((self.pick(draw)?, None)))
        {
            self.tried |= 1 << index;
            match UpstreamAttempt::of(&self.route.destinations[index], key, self.tokens, now) {
                Ok(attempt) => {
                    self.attempts += 1;
                    return Some(attempt);
                }
                Err(unavailable) => {
                    let earlier = self.unavailable.filter(|other| other.until <= unavailable.until);
                    self.unavailable = Some(earlier.unwrap_or(unavailable));
                }
            }
        }
        None
    }

    /// Switches to the next key of the same destination. False if all its keys are resting, or the request has reached its
    /// maximum number of attempts.
    pub(crate) fn next_key(&mut self, attempt: &mut UpstreamAttempt, now: Instant) -> bool {
        if self.attempts >= MAX_ATTEMPTS {
            return false;
        }
        let Ok(chosen) = attempt.destination.keys.choose(self.tokens, now) else { return false };
        self.attempts += 1;
        attempt.switch_to(chosen, now);
        true
    }

    /// Switches to a later key of the same destination, without resting the current one. False if there is none, or the request
    /// has reached its maximum number of attempts.
    pub(crate) fn further_key(&mut self, attempt: &mut UpstreamAttempt, now: Instant) -> bool {
        if self.attempts >= MAX_ATTEMPTS {
            return false;
        }
        let Some(chosen) = attempt.destination.keys.after(attempt.key, self.tokens, now) else {
            return false;
        };
        self.attempts += 1;
        attempt.switch_to(chosen, now);
        true
    }

    /// The size below which requests still use a key after the upstream rejected this one for lack of tokens:
    /// `tokens_left`, but at most half of this request, because its answer may need most of the tokens.
    pub(crate) fn below(&self, tokens_left: u64) -> u64 {
        tokens_left.min(self.tokens / 2)
    }

    /// Why the destinations that weren't tried are unavailable.
    pub(crate) fn unavailable(&self) -> Option<Unavailable> {
        self.unavailable
    }

    fn pick(&self, draw: u32) -> Option<usize> {
        let open = |index: usize, destination: &Destination| {
            self.tried & (1 << index) == 0 && self.allows(destination)
        };
        let candidates = || {
            let all = self.route.destinations.iter().enumerate();
            all.filter(|(index, destination)| open(*index, destination))
        };
        let order = candidates().map(|(_, destination)| destination.order).min()?;
        let candidates = || candidates().filter(|(_, destination)| destination.order == order);
        let sum: u64 = candidates().map(|(_, destination)| u64::from(destination.weight)).sum();
        let mut rest = u64::from(draw) % sum.max(1);
        for (index, destination) in candidates() {
            match rest.checked_sub(u64::from(destination.weight)) {
                Some(less) => rest = less,
                None => return Some(index),
            }
        }
        // All weights are zero.
        candidates().next().map(|(index, _)| index)
    }
}

impl UpstreamAttempt {
    /// `key`: the one to use, if it isn't resting. `tokens`: of the request.
    fn of(
        destination: &Arc<Destination>,
        key: Option<usize>,
        tokens: u64,
        now: Instant,
    ) -> Result<Self, Unavailable> {
        let unavailable = |why| move |until| Unavailable { why, until };
        let keys = &destination.keys;
        let key = key.map_or_else(|| keys.choose(tokens, now), |key| keys.prefer(key, tokens, now));
        let key = key.map_err(unavailable(SkipReason::KeysWait))?;
        let abandon_key = |_: &Instant| keys.abandoned(key, now);
        // First: a request that the breaker rejects doesn't count toward the limit per minute.
        let pass = destination.breaker.ask(now);
        let pass = pass.inspect_err(abandon_key).map_err(unavailable(SkipReason::Broken))?;
        let upstream = &destination.provider.upstream;
        let permit = destination
            .provider
            .load
            .admit(upstream.max_concurrent, upstream.max_requests_per_minute, now)
            .inspect_err(|_| destination.breaker.abandoned(pass, now))
            .inspect_err(abandon_key)
            .map_err(unavailable(SkipReason::Busy))?;
        Ok(Self { destination: Arc::clone(destination), key, pass: Some(pass), slot: Some(permit) })
    }

    /// The key in use.
    pub(crate) fn key(&self) -> Option<usize> {
        self.key.key
    }

    fn switch_to(&mut self, key: SelectedKey, now: Instant) {
        self.destination.keys.abandoned(self.key, now);
        self.key = key;
    }

    /// Frees the slot among the requests of the upstream: it has sent its whole answer.
    pub(crate) fn release_slot(&mut self) {
        self.slot = None;
    }

    /// The upstream works, and accepts the key.
    pub(crate) fn succeeded(&mut self, now: Instant) {
        self.destination.keys.succeeded(self.key);
        self.key = self.key.probed();
        self.responded(now);
    }

    /// The upstream works, whether or not it accepts the key: a rate limit is not a sign of bad health.
    pub(crate) fn responded(&mut self, now: Instant) {
        if let Some(pass) = self.pass.take() {
            self.destination.breaker.succeeded(pass, now);
        }
    }

    /// The upstream failed, possibly after it had started to answer.
    pub(crate) fn failed(&mut self, now: Instant) {
        let pass = self.pass.take().unwrap_or(BreakerPermit::Regular);
        self.destination.breaker.failed(pass, now);
    }

    /// Rests the key for a while. `below`: requests of fewer tokens still use it.
    pub(crate) fn rest_key(&mut self, time: Duration, below: u64, now: Instant) {
        self.destination.keys.rest(self.key, Rest { until: now + time, below }, now);
        self.key = self.key.probed();
    }

    /// Whether the upstream has no other key.
    pub(crate) fn has_one_key(&self) -> bool {
        self.destination.keys.is_alone()
    }
}

impl Drop for UpstreamAttempt {
    fn drop(&mut self) {
        let now = Instant::now();
        self.destination.keys.abandoned(self.key, now);
        if let Some(pass) = self.pass {
            self.destination.breaker.abandoned(pass, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use gatewright::ApiKey;

    use super::*;
    use crate::routing::Routes;
    use gatewright_config::{Kind, ModelConfig, TargetConfig, UpstreamConfig};

    /// A route to upstreams with these names, weights and orders.
    fn route(targets: &[(&str, u32, u32)], change: impl Fn(&mut UpstreamConfig)) -> Arc<ModelRoute> {
        let upstreams: Vec<UpstreamConfig> = targets
            .iter()
            .map(|(name, ..)| {
                let mut upstream = UpstreamConfig::new(*name, Kind::Chat, "http://127.0.0.1:1");
                change(&mut upstream);
                upstream
            })
            .collect();
        let mut model = ModelConfig::new("m", "f", TargetConfig::new(targets[0].0, "m"));
        model.targets = targets
            .iter()
            .map(|(name, weight, order)| {
                let mut target = TargetConfig::new(*name, "m");
                (target.weight, target.order) = (*weight, *order);
                target
            })
            .collect();
        let routes = Routes::new(&upstreams, &[model]).expect("routes");
        Arc::clone(routes.find("m").expect("the route"))
    }

    fn name(attempt: &UpstreamAttempt) -> String {
        attempt.destination.provider.upstream.name.clone()
    }

    fn names(route: &Arc<ModelRoute>, now: Instant, draw: u32) -> Vec<String> {
        let mut plan = route.plan(None);
        std::iter::from_fn(|| plan.next(now, draw)).map(|attempt| name(&attempt)).collect()
    }

    #[test]
    fn lower_orders_come_first_and_weights_apply_within_one() {
        let route = route(&[("late", 1, 1), ("heavy", 3, 0), ("light", 1, 0)], |_| {});
        let now = Instant::now();
        let first = |draw| names(&route, now, draw).swap_remove(0);
        assert_eq!([first(0), first(1), first(2), first(3)], ["heavy", "heavy", "heavy", "light"]);
        assert_eq!(names(&route, now, 3), ["light", "heavy", "late"]);
    }

    #[test]
    fn plan_may_begin_at_an_upstream_and_end_there() {
        let key = |text: &str| ApiKey::new(text).expect("a key");
        let route = route(&[("one", 1, 0), ("two", 1, 1)], |upstream| {
            upstream.keys = vec![key("a"), key("b")];
        });
        let now = Instant::now();
        let attempts = |mut plan: Plan| -> Vec<(String, Option<usize>)> {
            std::iter::from_fn(|| plan.next(now, 0)).map(|attempt| (name(&attempt), attempt.key())).collect()
        };
        let (one, two) = (("one".to_owned(), Some(0)), ("two".to_owned(), Some(1)));
        let mark = route.destinations[1].provider.endpoint.mark_of(1);
        let mut plan = route.plan(None);
        assert!(plan.begin_at("two", mark, false));
        assert_eq!(attempts(plan), [two.clone(), one.clone()]);
        let mut plan = route.plan(None);
        assert!(plan.begin_at("two", mark, true));
        assert_eq!(attempts(plan), [two]);
        let mut plan = route.plan(None);
        assert!(!plan.begin_at("three", None, true));
        assert_eq!(attempts(plan), []);
        // A repeated attempt comes first.
        let mut plan = route.plan(None);
        let attempt = plan.next(now, 0).expect("one");
        plan.again(&attempt);
        assert_eq!(attempts(plan), [one, ("two".to_owned(), Some(0))]);
    }

    #[test]
    fn open_breaker_is_skipped() {
        let route = route(&[("one", 1, 0), ("two", 1, 1)], |_| {});
        let now = Instant::now();
        for _ in 0..5 {
            route.plan(None).next(now, 0).expect("one").failed(now);
        }
        assert_eq!(names(&route, now, 0), ["two"]);
        // It is tried again after its pause.
        assert_eq!(names(&route, now + Duration::from_secs(5), 0), ["one", "two"]);
    }

    #[test]
    fn requests_stopped_by_the_breaker_do_not_use_the_rate_limit() {
        let route = route(&[("one", 1, 0)], |upstream| upstream.max_requests_per_minute = Some(6));
        let now = Instant::now();
        for _ in 0..5 {
            route.plan(None).next(now, 0).expect("one").failed(now);
        }
        for _ in 0..10 {
            assert!(route.plan(None).next(now, 0).is_none());
        }
        let later = now + Duration::from_secs(6);
        let probe = route.plan(None).next(later, 0).expect("the probe");
        // One rejected by the limit per minute leaves the probe to the next.
        drop(probe);
        assert!(route.plan(None).next(later, 0).is_none());
        let next_minute = now + Duration::from_secs(61);
        assert!(route.plan(None).next(next_minute, 0).is_some());
    }

    #[test]
    fn full_upstream_is_skipped_and_reported_as_busy() {
        let route = route(&[("one", 1, 0)], |upstream| upstream.max_concurrent = Some(1));
        let now = Instant::now();
        let mut plan = route.plan(None);
        let attempt = plan.next(now, 0).expect("a place");
        let mut other = route.plan(None);
        assert!(other.next(now, 0).is_none());
        assert_eq!(other.unavailable().map(|unavailable| unavailable.why), Some(SkipReason::Busy));
        drop(attempt);
        assert_eq!(names(&route, now, 0), ["one"]);
    }

    #[test]
    fn next_key_is_used_while_one_rests() {
        let key = |text: &str| ApiKey::new(text).expect("a key");
        let route = route(&[("one", 1, 0)], |upstream| upstream.keys = vec![key("a"), key("b")]);
        let now = Instant::now();
        let mut plan = route.plan(None);
        let mut attempt = plan.next(now, 0).expect("a key");
        assert_eq!(attempt.key(), Some(0));
        attempt.rest_key(Duration::from_secs(9), 0, now);
        assert!(plan.next_key(&mut attempt, now));
        assert_eq!(attempt.key(), Some(1));
        attempt.rest_key(Duration::from_secs(3), 0, now);
        assert!(!plan.next_key(&mut attempt, now));
        drop(attempt);
        let mut later = route.plan(None);
        assert!(later.next(now, 0).is_none());
        let until = now + Duration::from_secs(3);
        assert_eq!(later.unavailable(), Some(Unavailable { why: SkipReason::KeysWait, until }));
    }

    #[test]
    fn probe_without_an_outcome_frees_the_probe_slot() {
        let route = route(&[("one", 1, 0)], |_| {});
        let now = Instant::now();
        for _ in 0..5 {
            route.plan(None).next(now, 0).expect("one").failed(now);
        }
        let later = now + Duration::from_secs(6);
        let probe = route.plan(None).next(later, 0).expect("the probe");
        assert!(route.plan(None).next(later, 0).is_none());
        drop(probe);
        assert!(route.plan(None).next(later, 0).is_some());
    }

    #[test]
    fn rate_limit_blocks_other_requests_until_a_probe_succeeds() {
        let route = route(&[("one", 1, 0)], |_| {});
        let now = Instant::now();
        let mut refused = route.plan(None).next(now, 0).expect("an attempt");
        refused.rest_key(Duration::from_hours(1), 0, now);
        refused.responded(now);
        drop(refused);
        let mut plan = route.plan(None);
        assert!(plan.next(now, 0).is_none());
        let until = plan.unavailable().expect("a time").until;
        assert_eq!(until, now + Duration::from_mins(1), "not an hour");
        let mut probe = route.plan(None).next(until, 0).expect("the probe");
        assert!(route.plan(None).next(until, 0).is_none(), "one probe at a time");
        probe.succeeded(until);
        assert!(route.plan(None).next(until, 0).is_some());
        drop(probe);
        assert!(route.plan(None).next(until, 0).is_some());
    }

    #[test]
    fn rate_limit_of_one_model_does_not_block_another() {
        let upstreams = [UpstreamConfig::new("one", Kind::Chat, "http://127.0.0.1:1")];
        let models = ["m", "n"].map(|id| ModelConfig::new(id, "f", TargetConfig::new("one", id)));
        let routes = Routes::new(&upstreams, &models).expect("routes");
        let now = Instant::now();
        let next = |id| routes.find(id).expect("a route").plan(None).next(now, 0);
        next("m").expect("an attempt").rest_key(Duration::from_hours(1), 0, now);
        assert_eq!((next("m").is_none(), next("n").is_some()), (true, true));
    }

    #[test]
    fn token_limit_blocks_only_large_requests() {
        let route = route(&[("one", 1, 0)], |_| {});
        let now = Instant::now();
        let next = |tokens| route.plan(None).of_tokens(tokens).next(now, 0);
        let plan = route.plan(None).of_tokens(10_000);
        assert_eq!((plan.below(300), plan.below(8_000)), (300, 5_000));
        next(10_000).expect("an attempt").rest_key(Duration::from_hours(1), plan.below(8_000), now);
        assert_eq!(
            (next(10_000).is_none(), next(5_000).is_none(), next(4_999).is_some()),
            (true, true, true)
        );
    }

    #[test]
    fn key_probe_stopped_by_a_full_upstream_passes_to_the_next_request() {
        let route = route(&[("one", 1, 0)], |upstream| upstream.max_concurrent = Some(1));
        let now = Instant::now();
        let mut busy = route.plan(None).next(now, 0).expect("an attempt");
        busy.rest_key(Duration::from_secs(1), 0, now);
        let later = now + Duration::from_secs(1);
        assert!(route.plan(None).next(later, 0).is_none());
        drop(busy);
        assert!(route.plan(None).next(later, 0).is_some());
    }
}
