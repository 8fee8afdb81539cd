//! What a key has spent today and this month.

use std::sync::{Mutex, PoisonError};

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
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost = self.cost.saturating_add(other.cost);
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
        Self { periods: Mutex::new(Periods { day, today, month }) }
    }

    pub(crate) fn add(&self, day: Day, spent: Spent) {
        let mut periods = self.periods.lock().unwrap_or_else(PoisonError::into_inner);
        periods.turn(day);
        periods.today.add(spent);
        periods.month.add(spent);
    }

    /// What was spent today and this month.
    pub(crate) fn read(&self, day: Day) -> (Spent, Spent) {
        let mut periods = self.periods.lock().unwrap_or_else(PoisonError::into_inner);
        periods.turn(day);
        (periods.today, periods.month)
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
        spending.add(day("2026-07-30"), some);
        assert_eq!(spending.read(day("2026-07-30")), (twice, twice));
        assert_eq!(spending.read(day("2026-07-31")), (Spent::default(), twice));
        spending.add(day("2026-08-01"), some);
        assert_eq!(spending.read(day("2026-08-01")), (some, some));
    }
}
