//! What a key has spent today and this month.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Day;

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) tokens: u64,
    /// In billionths of the currency.
    pub(crate) cost: u64,
}

impl Spent {
    pub(crate) fn add(&mut self, other: Self) {
        *self = self.and(other);
    }

    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(other.tokens), cost: self.cost.saturating_add(other.cost) }
    }

    fn without(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_sub(other.tokens), cost: self.cost.saturating_sub(other.cost) }
    }

    /// The larger amount of each.
    fn max(self, other: Self) -> Self {
        Self { tokens: self.tokens.max(other.tokens), cost: self.cost.max(other.cost) }
    }
}

/// The spending of one key. The lock is held for a few additions, never while anything waits.
#[derive(Debug)]
pub(crate) struct Spending {
    periods: Mutex<Periods>,
}

#[derive(Debug)]
struct Periods {
    day: Day,
    today: Spent,
    month: Spent,
    /// What requests in progress are expected to take.
    reserved: Spent,
}

impl Periods {
    /// Begins a new day, and a new month where the day is in another.
    fn turn(&mut self, day: Day) {
        if self.day != day {
            if self.day.month() != day.month() {
                self.month = Spent::default();
            }
            (self.day, self.today) = (day, Spent::default());
        }
    }
}

impl Spending {
    /// What was spent on a day, and in its month with the day.
    pub(crate) fn since(day: Day, today: Spent, month: Spent) -> Self {
        Self { periods: Mutex::new(Periods { day, today, month, reserved: Spent::default() }) }
    }

    fn lock(&self, day: Day) -> MutexGuard<'_, Periods> {
        let mut periods = self.periods.lock().unwrap_or_else(PoisonError::into_inner);
        periods.turn(day);
        periods
    }

    /// Adds what a request took, in place of what was `reserved` for it.
    pub(crate) fn settle(&self, day: Day, spent: Spent, reserved: Spent) {
        let mut periods = self.lock(day);
        periods.reserved = periods.reserved.without(reserved);
        periods.today.add(spent);
        periods.month.add(spent);
    }

    /// Takes over what the store knows: other processes spend, too. What this one spent and has not written yet may be
    /// missing there, so that an amount only grows; once it is written, the store has the sum.
    pub(crate) fn follow(&self, day: Day, today: Spent, month: Spent) {
        let mut periods = self.periods.lock().unwrap_or_else(PoisonError::into_inner);
        // The store was asked before midnight.
        if day < periods.day {
            return;
        }
        periods.turn(day);
        (periods.today, periods.month) = (periods.today.max(today), periods.month.max(month));
    }

    /// What was spent today and this month.
    pub(crate) fn read(&self, day: Day) -> (Spent, Spent) {
        let periods = self.lock(day);
        (periods.today, periods.month)
    }

    /// Reserves what a request is expected to take, if `check` allows it: of what was spent today and this month, and what
    /// is reserved.
    pub(crate) fn reserve<E>(
        &self,
        day: Day,
        expected: Spent,
        check: impl FnOnce(Spent, Spent, Spent) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut periods = self.lock(day);
        check(periods.today, periods.month, periods.reserved)?;
        periods.reserved.add(expected);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_and_a_month_begin_with_nothing_spent() {
        let day = |text: &str| text.parse::<Day>().expect("a day");
        let some = Spent { tokens: 10, cost: 3 };
        let twice = Spent { tokens: 20, cost: 6 };
        let spending = Spending::since(day("2026-07-30"), some, some);
        let add = |day| spending.settle(day, some, Spent::default());
        add(day("2026-07-30"));
        assert_eq!(spending.read(day("2026-07-30")), (twice, twice));
        assert_eq!(spending.read(day("2026-07-31")), (Spent::default(), twice));
        add(day("2026-08-01"));
        assert_eq!(spending.read(day("2026-08-01")), (some, some));
    }

    #[test]
    fn what_other_processes_spent_is_taken_over_and_nothing_is_forgotten() {
        let day = |text: &str| text.parse::<Day>().expect("a day");
        let (little, much) = (Spent { tokens: 5, cost: 9 }, Spent { tokens: 10, cost: 3 });
        let spending = Spending::since(day("2026-07-30"), little, little);
        spending.follow(day("2026-07-30"), much, much);
        let both = Spent { tokens: 10, cost: 9 };
        assert_eq!(spending.read(day("2026-07-30")), (both, both));
        assert_eq!(spending.read(day("2026-07-31")), (Spent::default(), both));
        // What was read before midnight says nothing of the new day.
        spending.follow(day("2026-07-30"), much, much);
        assert_eq!(spending.read(day("2026-07-31")), (Spent::default(), both));
        spending.follow(day("2026-07-31"), little, both);
        assert_eq!(spending.read(day("2026-07-31")), (little, both));
    }
}
