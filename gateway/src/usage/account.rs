//! How much of its limits a key has used: in memory, one account per key and process. If gateways share counters, the counters
//! decide, and the account follows them, so that it can decide while they are unavailable.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use gatewright_store::{Day, KeyLimits, Spent, SpentSoFar, billionths};
use gatewright_system::clock::monotonic_nanos;

use super::Spending;
use super::meter::{Meter, Remaining};
use crate::counters::{self, KeySnapshot, LimitVerdict, SharedCounters};

/// [`Account::agreed`] before the counters' first decision. What the key has used is reported then: a gateway that started without
/// the counters has lost no connection, but has counted alone.
const NEVER: u64 = u64::MAX;

/// The account of one key. It survives changes to the key.
#[derive(Debug)]
pub(crate) struct Account {
    requests: Meter,
    tokens: Meter,
    in_flight: AtomicU64,
    /// The counters' number of losses when they last decided; [`NEVER`] before.
    agreed: AtomicU64,
    spending: Spending,
    /// The memory of its answers in progress, in bytes.
    held: Arc<AtomicUsize>,
}

/// The limit that a request exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitExceeded {
    /// With the time until one is available.
    Requests(Duration),
    Tokens(Duration),
    Concurrent,
    TokensOfDay,
    TokensOfMonth,
    CostOfDay,
    CostOfMonth,
    /// A budget that requests in progress have reserved completely.
    InProgress,
}

/// The remaining limits per minute; `None` if there is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    pub(crate) requests: Option<Remaining>,
    pub(crate) tokens: Option<Remaining>,
}

impl Account {
    pub(crate) fn new(spending: Spending) -> Self {
        let (requests, tokens, in_flight, held) = Default::default();
        Self { requests, tokens, in_flight, agreed: AtomicU64::new(NEVER), spending, held }
    }

    pub(super) fn held(&self) -> &Arc<AtomicUsize> {
        &self.held
    }

    /// Counts a request, if it is within the limits. Returns its slot among the concurrent requests, if they are limited. `now`:
    /// see [`Meter`].
    pub(crate) fn begin(
        self: &Arc<Self>,
        limits: &KeyLimits,
        now: u64,
    ) -> Result<Option<InFlight>, LimitExceeded> {
        self.check_budget(limits)?;
        self.check_tokens(limits, now)?;
        let place = self.place(limits)?;
        // Last, so that a request that is rejected for another reason doesn't count.
        self.take_request(limits, now)?;
        Ok(place)
    }

    /// The same, decided by the counters that gateways share; while they are unavailable, by this gateway.
    pub(crate) async fn begin_among(
        self: &Arc<Self>,
        counters: &SharedCounters,
        key: &Arc<str>,
        limits: &KeyLimits,
    ) -> Result<Option<InFlight>, LimitExceeded> {
        self.check_budget(limits)?;
        let mut place = self.place(limits)?;
        let shared = place.is_some().then(|| counters.place(key));
        let (now, losses) = (monotonic_nanos(), counters.losses());
        let insists = self.agreed.load(Ordering::Relaxed) != losses;
        let spent = limits.have_budget().then(|| self.spending.read(Day::today()));
        let seen =
            KeySnapshot { requests: self.requests.used(now), tokens: self.tokens.used(now), spent, insists };
        if let Some(answer) = counters.ask(key, limits, seen, shared.as_ref()).await {
            self.agreed.store(losses, Ordering::Relaxed);
            // With the time before the call, so that usage is never understated.
            self.requests.follow(answer.requests, now);
            self.tokens.follow(answer.tokens, now);
            if let Some(SpentSoFar { day, .. }) = spent {
                self.spending.follow(SpentSoFar { day, today: answer.today, month: answer.month });
            }
            let exceeded = match answer.verdict {
                LimitVerdict::Granted => None,
                LimitVerdict::Requests(wait) => Some(LimitExceeded::Requests(wait)),
                LimitVerdict::Tokens(wait) => Some(LimitExceeded::Tokens(wait)),
                LimitVerdict::Concurrent => Some(LimitExceeded::Concurrent),
                LimitVerdict::TokensOfDay => Some(LimitExceeded::TokensOfDay),
                LimitVerdict::CostOfDay => Some(LimitExceeded::CostOfDay),
                LimitVerdict::TokensOfMonth => Some(LimitExceeded::TokensOfMonth),
                LimitVerdict::CostOfMonth => Some(LimitExceeded::CostOfMonth),
            };
            if let Some(exceeded) = exceeded {
                if let Some(shared) = shared {
                    shared.refused();
                }
                return Err(exceeded);
            }
        } else {
            let now = monotonic_nanos();
            self.check_tokens(limits, now)?;
            self.take_request(limits, now)?;
        }
        if let Some((place, shared)) = place.as_mut().zip(shared) {
            shared.hold();
            place.shared = Some(shared);
        }
        Ok(place)
    }

    fn check_tokens(&self, limits: &KeyLimits, now: u64) -> Result<(), LimitExceeded> {
        match limits.tokens_per_minute.and_then(|limit| self.tokens.wait(limit, now)) {
            Some(wait) => Err(LimitExceeded::Tokens(wait)),
            None => Ok(()),
        }
    }

    fn place(self: &Arc<Self>, limits: &KeyLimits) -> Result<Option<InFlight>, LimitExceeded> {
        let place = |limit| InFlight::begin(self, limit).ok_or(LimitExceeded::Concurrent);
        limits.concurrent_requests.map(place).transpose()
    }

    fn take_request(&self, limits: &KeyLimits, now: u64) -> Result<(), LimitExceeded> {
        let taken = limits.requests_per_minute.map(|limit| self.requests.take(limit, now));
        taken.transpose().map(drop).map_err(LimitExceeded::Requests)
    }

    fn check_budget(&self, limits: &KeyLimits) -> Result<(), LimitExceeded> {
        if !limits.have_budget() {
            return Ok(());
        }
        let SpentSoFar { today, month, .. } = self.spending.read(Day::today());
        within(limits, today, month)
    }

    /// Reserves what a request is expected to consume until it ends, if any budget is left besides other reservations. Returns
    /// the reservation, which is empty without a budget. `whole`: only if all of it is left, because it is for many requests.
    pub(super) fn reserve(
        &self,
        limits: &KeyLimits,
        expected: Spent,
        whole: bool,
    ) -> Result<Spent, LimitExceeded> {
        if !limits.have_budget() {
            return Ok(Spent::default());
        }
        self.spending.reserve(Day::today(), expected, |today, month, reserved| {
            within(limits, today, month)?;
            within(limits, today.and(reserved), month.and(reserved))
                .map_err(|_| LimitExceeded::InProgress)?;
            let added = if whole { reserved.and(expected) } else { reserved };
            within(limits, today.and(added), month.and(added))
        })?;
        Ok(expected)
    }

    /// Releases a reservation of which nothing was consumed.
    pub(super) fn release(&self, reserved: Spent) {
        if reserved != Spent::default() {
            self.spending.settle(Day::today(), Spent::default(), reserved);
        }
    }

    /// Adopts the spending that the store reports.
    pub(crate) fn follow(&self, day: Day, (today, month): (Spent, Spent)) {
        self.spending.follow(SpentSoFar { day, today, month });
    }

    /// Records what a request consumed, in place of what was `reserved` for it. Returns the total spending.
    pub(super) fn spend(
        &self,
        limits: &KeyLimits,
        day: Day,
        spent: Spent,
        reserved: Spent,
        now: u64,
    ) -> SpentSoFar {
        if let Some(limit) = limits.tokens_per_minute {
            self.tokens.add(spent.tokens, limit, now);
        }
        self.spending.settle(day, spent, reserved)
    }

    pub(crate) fn allowance(&self, limits: &KeyLimits, now: u64) -> Allowance {
        Allowance {
            requests: limits.requests_per_minute.map(|limit| self.requests.left(limit, now)),
            tokens: limits.tokens_per_minute.map(|limit| self.tokens.left(limit, now)),
        }
    }
}

/// Errors: a budget is used up.
fn within(limits: &KeyLimits, today: Spent, month: Spent) -> Result<(), LimitExceeded> {
    let KeyLimits { tokens_per_day, tokens_per_month, cost_per_day, cost_per_month, .. } = *limits;
    let used_up = |spent: u64, limit: Option<u64>| limit.is_some_and(|limit| spent >= limit);
    let exceeded = [
        (used_up(today.tokens, tokens_per_day), LimitExceeded::TokensOfDay),
        (used_up(month.tokens, tokens_per_month), LimitExceeded::TokensOfMonth),
        (used_up(today.cost, cost_per_day.map(billionths)), LimitExceeded::CostOfDay),
        (used_up(month.cost, cost_per_month.map(billionths)), LimitExceeded::CostOfMonth),
    ];
    match exceeded.into_iter().find(|(exceeded, _)| *exceeded) {
        Some((_, limit)) => Err(limit),
        None => Ok(()),
    }
}

/// A request's slot among the concurrent requests of its key, until dropped.
#[derive(Debug)]
pub(crate) struct InFlight {
    account: Arc<Account>,
    /// The same among the requests of all gateways, if they share counters.
    shared: Option<counters::ConcurrencySlot>,
}

impl InFlight {
    /// `None` if the key has reached its limit.
    fn begin(account: &Arc<Account>, limit: u64) -> Option<Self> {
        let more = |count: u64| (count < limit).then(|| count + 1);
        account.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self { account: Arc::clone(account), shared: None })
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.account.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Arc<Account> {
        let nothing = Spent::default();
        Arc::new(Account::new(Spending::since(Day::today(), nothing, nothing)))
    }

    #[test]
    fn request_holds_its_slot_until_it_ends() {
        let account = account();
        let limits = KeyLimits { concurrent_requests: Some(2), ..KeyLimits::default() };
        let begin = || account.begin(&limits, 0);
        let one = begin().expect("a place");
        let other = begin().expect("a place");
        assert_eq!(begin().map(drop), Err(LimitExceeded::Concurrent));
        drop(one);
        let third = begin().expect("a place");
        assert!(other.is_some() && third.is_some());
    }

    #[test]
    fn rejected_request_consumes_no_limit() {
        let account = account();
        let limits =
            KeyLimits { concurrent_requests: Some(1), requests_per_minute: Some(2), ..KeyLimits::default() };
        let one = account.begin(&limits, 0).expect("a place");
        assert_eq!(account.begin(&limits, 0).map(drop), Err(LimitExceeded::Concurrent));
        assert_eq!(account.allowance(&limits, 0).requests.map(|left| left.remaining), Some(1));
        drop(one);
        account.begin(&limits, 0).expect("the second request of the minute");
        // Its slot among the concurrent requests is released, too.
        for _ in 0..2 {
            assert!(matches!(account.begin(&limits, 0), Err(LimitExceeded::Requests(_))));
        }
    }

    #[test]
    fn exhausted_budget_rejects_requests() {
        let account = account();
        let (tokens, cost) = (100, billionths(0.5));
        let limits =
            KeyLimits { tokens_per_month: Some(101), cost_per_day: Some(0.5), ..KeyLimits::default() };
        let spend = |spent| account.spend(&limits, Day::today(), spent, Spent::default(), 0);
        assert!(account.begin(&limits, 0).is_ok());
        spend(Spent { tokens, cost: cost - 1 });
        assert!(account.begin(&limits, 0).is_ok());
        spend(Spent { tokens: 0, cost: 1 });
        assert_eq!(account.begin(&limits, 0).map(drop), Err(LimitExceeded::CostOfDay));
        spend(Spent { tokens: 1, cost: 0 });
        assert_eq!(account.begin(&limits, 0).map(drop), Err(LimitExceeded::TokensOfMonth));
    }

    #[test]
    fn requests_in_progress_reserve_their_share_of_a_budget() {
        let account = account();
        let limits = KeyLimits { tokens_per_day: Some(100), ..KeyLimits::default() };
        let expected = Spent { tokens: 60, cost: 7 };
        let reserve = || account.reserve(&limits, expected, false);
        assert_eq!((reserve(), reserve()), (Ok(expected), Ok(expected)));
        assert_eq!(reserve(), Err(LimitExceeded::InProgress));
        // One consumed less, and another nothing.
        account.spend(&limits, Day::today(), Spent { tokens: 30, cost: 0 }, expected, 0);
        assert_eq!(reserve(), Ok(expected));
        account.release(expected);
        account.release(expected);
        account.spend(&limits, Day::today(), Spent { tokens: 70, cost: 0 }, Spent::default(), 0);
        assert_eq!(reserve(), Err(LimitExceeded::TokensOfDay));
        assert_eq!(account.reserve(&KeyLimits::default(), expected, false), Ok(Spent::default()));
    }

    mod redis {
        use gatewright_config::{CounterServer, CountersUrl};
        use gatewright_test_stores::Redis;

        use super::*;

        /// Long enough for a busy machine; no passing test reaches it.
        const PATIENCE: Duration = Duration::from_mins(1);

        fn start(redis: &Redis) -> Arc<SharedCounters> {
            let url = CountersUrl::new(&redis.url()).expect("an address");
            let server = CounterServer { url, timeout: PATIENCE, lease: PATIENCE };
            Arc::new(SharedCounters::start(&server).expect("an address"))
        }

        async fn present(counters: &SharedCounters) {
            let waiting = async {
                while !counters.is_present() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(PATIENCE, waiting).await.expect("the server is found");
        }

        #[tokio::test]
        async fn gateway_started_without_the_server_reports_what_it_counted_alone() {
            let mut redis = Redis::start();
            redis.stop();
            let node = start(&redis);
            let account = account();
            let limits = KeyLimits { requests_per_minute: Some(3), ..KeyLimits::default() };
            let key: Arc<str> = "k".into();
            let begin = async || account.begin_among(&node, &key, &limits).await.map(drop);
            for _ in 0..3 {
                assert_eq!(begin().await, Ok(()));
            }
            redis.resume();
            present(&node).await;
            // Another gateway is the first to use the key there.
            let other = start(&redis);
            present(&other).await;
            let answer = other.ask(&key, &limits, KeySnapshot::default(), None).await.expect("an answer");
            assert_eq!(answer.verdict, LimitVerdict::Granted);
            assert!(matches!(begin().await, Err(LimitExceeded::Requests(_))));
            assert_eq!(node.losses(), 0);
        }
    }
}
