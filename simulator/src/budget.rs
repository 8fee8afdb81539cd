//! The cost limit of a request: a budget of steps and bytes, shared by all work for its response.
//!
//! A step is about a nanosecond of work, such as reading a byte or making a comparison. More expensive work is charged
//! more. Work is charged before it is done, so that no request costs more than its budget.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Steps per request: well under a second of processor time in a release build.
pub const STEPS: usize = 100_000_000;
/// Bytes per response, all choices together.
pub const BYTES: usize = 32 * 1024 * 1024;

/// The remaining budget of one request.
#[derive(Debug)]
pub struct Budget {
    steps: BudgetMeter,
    bytes: BudgetMeter,
    left: Arc<AtomicBool>,
}

/// When dropped, signals the work for a request that its result is no longer needed.
#[derive(Debug)]
pub struct CancelOnDrop(Arc<AtomicBool>);

/// Why the work for a request stops without a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BudgetExceeded {
    /// It takes more work.
    #[error(
        "this request needs more than the {0} steps that the simulated provider spends on one; reduce it: \
         fewer choices, a shorter prompt, fewer tools, or a smaller JSON Schema with less recursion, smaller \
         minItems and simpler patterns"
    )]
    Steps(usize),
    /// Its answers are longer.
    #[error(
        "the answers to this request exceed the {0} bytes that the simulated provider generates for one; reduce it: fewer \
            choices, fewer top_logprobs, a shorter text to repeat, a shorter conversation, fewer tools, or a \
         JSON Schema with smaller values"
    )]
    Bytes(usize),
    /// The answer is no longer needed.
    #[error("the client disconnected")]
    ClientGone,
}

#[derive(Debug)]
struct BudgetMeter {
    limit: usize,
    spent: Cell<usize>,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new()
    }
}

impl Budget {
    /// The budget that every request has.
    pub fn new() -> Self {
        Self::of(STEPS, BYTES)
    }

    /// A budget of this many steps and bytes.
    pub fn of(steps: usize, bytes: usize) -> Self {
        let account = |limit| BudgetMeter { limit, spent: Cell::new(0) };
        Self { steps: account(steps), bytes: account(bytes), left: Arc::default() }
    }

    /// The guard that the waiting caller holds.
    pub fn waiting(&self) -> CancelOnDrop {
        CancelOnDrop(Arc::clone(&self.left))
    }

    /// Charges steps, before the work is done.
    pub fn work(&self, steps: usize) -> Result<(), BudgetExceeded> {
        if self.left.load(Ordering::Relaxed) {
            return Err(BudgetExceeded::ClientGone);
        }
        if self.steps.charge(steps) { Ok(()) } else { Err(BudgetExceeded::Steps(self.steps.limit)) }
    }

    /// Charges bytes and the work of producing them, before they are produced.
    pub fn make(&self, bytes: usize) -> Result<(), BudgetExceeded> {
        if !self.bytes.charge(bytes) {
            return Err(BudgetExceeded::Bytes(self.bytes.limit));
        }
        self.work(bytes)
    }

    /// Steps spent.
    pub fn worked(&self) -> usize {
        self.steps.spent.get()
    }

    /// Bytes produced.
    pub fn made(&self) -> usize {
        self.bytes.spent.get()
    }
}

impl BudgetMeter {
    /// Subtracts an amount if it is available, and returns whether it was. The account never becomes negative.
    fn charge(&self, amount: usize) -> bool {
        let spent = self.spent.get().saturating_add(amount);
        let covered = spent <= self.limit;
        if covered {
            self.spent.set(spent);
        }
        covered
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_limits_steps_and_bytes() {
        let budget = Budget::of(10, 4);
        assert_eq!(budget.work(8), Ok(()));
        assert_eq!(budget.work(3), Err(BudgetExceeded::Steps(10)));
        assert_eq!(budget.make(2), Ok(()));
        assert_eq!((budget.worked(), budget.made()), (10, 2));
        assert_eq!(Budget::of(10, 4).make(5), Err(BudgetExceeded::Bytes(4)));
        assert_eq!(Budget::of(10, 4).work(usize::MAX), Err(BudgetExceeded::Steps(10)));
    }

    #[test]
    fn budget_is_exceeded_once_the_client_is_gone() {
        let budget = Budget::new();
        drop(budget.waiting());
        assert_eq!(budget.work(1), Err(BudgetExceeded::ClientGone));
        assert_eq!(budget.make(1), Err(BudgetExceeded::ClientGone));
    }
}
