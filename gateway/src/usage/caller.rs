//! Who makes a request.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use gatewright_store::{Day, KeyLimits, Scopes, Spent, Totals, UsageKey};
use gatewright_system::clock::monotonic_nanos;

use super::account::{Account, Allowance, InFlight, LimitExceeded};
use super::{Ledger, Spending};
use crate::counters::SharedCounters;

/// The key that made a request: cheap to clone, and without the secret.
#[derive(Debug, Clone)]
pub(crate) struct Caller(Arc<CallerInner>);

#[derive(Debug)]
struct CallerInner {
    id: Arc<str>,
    scopes: Scopes,
    limits: KeyLimits,
    account: Arc<Account>,
    ledger: Arc<Ledger>,
    /// If gateways share counters, and the key has limits that they count.
    counters: Option<Arc<SharedCounters>>,
}

impl Caller {
    /// `counters`: those that gateways share.
    pub(crate) fn new(
        id: Arc<str>,
        scopes: Scopes,
        limits: KeyLimits,
        account: Arc<Account>,
        ledger: Arc<Ledger>,
        counters: Option<Arc<SharedCounters>>,
    ) -> Self {
        let counters = counters.filter(|_| limits.are_counted());
        Self(Arc::new(CallerInner { id, scopes, limits, account, ledger, counters }))
    }

    /// A key with all permissions and no limits.
    pub(crate) fn unlimited(id: &str, ledger: &Arc<Ledger>) -> Self {
        let (nothing, today) = (Spent::default(), Day::today());
        let account = Arc::new(Account::new(Spending::since(today, nothing, nothing)));
        Self::new(id.into(), Scopes::all(), KeyLimits::default(), account, Arc::clone(ledger), None)
    }

    /// The id of the key, which is not secret.
    pub(crate) fn id(&self) -> &Arc<str> {
        &self.0.id
    }

    /// The permissions of the key.
    pub(crate) fn scopes(&self) -> &Scopes {
        &self.0.scopes
    }

    /// The limits of the key.
    pub(crate) fn limits(&self) -> &KeyLimits {
        &self.0.limits
    }

    /// The memory of the key's answers, in bytes.
    pub(crate) fn held(&self) -> &Arc<AtomicUsize> {
        self.0.account.held()
    }

    /// Counts a request, if it is within the limits. The slot is held until the response is sent. Waits for shared counters for a
    /// bounded time; without them, it doesn't wait.
    pub(crate) async fn begin(&self) -> Result<Option<InFlight>, LimitExceeded> {
        let CallerInner { id, limits, account, counters, .. } = &*self.0;
        match counters {
            Some(counters) => account.begin_among(counters, id, limits).await,
            None => account.begin(limits, monotonic_nanos()),
        }
    }

    /// The remaining limits per minute.
    pub(crate) fn allowance(&self) -> Allowance {
        self.0.account.allowance(&self.0.limits, monotonic_nanos())
    }

    /// Reserves what a request is expected to consume. Returns the reservation, to be released when the request ends.
    /// `whole`: only if the budgets cover all of it.
    pub(super) fn reserve(&self, expected: Spent, whole: bool) -> Result<Spent, LimitExceeded> {
        self.0.account.reserve(&self.0.limits, expected, whole)
    }

    /// Releases the reservation of a request that consumed nothing.
    pub(super) fn release(&self, reserved: Spent) {
        self.0.account.release(reserved);
    }

    /// Counts a request that failed. `model`: unless it is unknown. `upstream`: the one that failed, if one did.
    pub(crate) fn failed(&self, model: Option<&Arc<str>>, upstream: Option<&Arc<str>>) {
        let name = |name: Option<&Arc<str>>| name.cloned().unwrap_or_default();
        let (key, model, upstream) = (Arc::clone(&self.0.id), name(model), name(upstream));
        let place = UsageKey { day: Day::today(), key, model, upstream };
        self.0.ledger.add(&place, &Totals { failed: 1, ..Totals::default() });
    }

    /// Records what a request consumed, in place of its reservation.
    pub(super) fn settle(&self, model: &Arc<str>, upstream: &Arc<str>, totals: &Totals, reserved: Spent) {
        let day = Day::today();
        let spent = Spent { tokens: totals.input.saturating_add(totals.output), cost: totals.cost };
        let so_far = self.0.account.spend(&self.0.limits, day, spent, reserved, monotonic_nanos());
        if let Some(counters) = &self.0.counters {
            counters.add(&self.0.id, &self.0.limits, spent, so_far);
        }
        let (key, model, upstream) = (Arc::clone(&self.0.id), Arc::clone(model), Arc::clone(upstream));
        self.0.ledger.add(&UsageKey { day, key, model, upstream }, totals);
    }
}
