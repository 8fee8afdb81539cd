//! What a key has spent today and this month.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Day, Spent, SpentSoFar};

/// The spending of one key. The lock is held for a few additions, never across a wait.
#[derive(Debug)]
pub(crate) struct Spending {
    periods: Mutex<Periods>,
}

#[derive(Debug)]
struct Periods {
    day: Day,
    today: Spent,
    month: Spent,
    /// What requests in progress are expected to consume.
    reserved: Spent,
}

impl Periods {
    /// Starts a new day, and a new month if the day is in another.
    fn turn(&mut self, day: Day) {
        if self.day != day {
            if self.day.month() != day.month() {
                self.month = Spent::default();
            }
            (self.day, self.today) = (day, Spent::default());
        }
    }

    fn so_far(&self) -> SpentSoFar {
        SpentSoFar { day: self.day, today: self.today, month: self.month }
    }
}

impl Spending {
    /// Creates it with what was spent on a day, and in the month up to and including that day.
    pub(crate) fn since(day: Day, today: Spent, month: Spent) -> Self {
        Self { periods: Mutex::new(Periods { day, today, month, reserved: Spent::default() }) }
    }

    fn lock(&self, day: Day) -> MutexGuard<'_, Periods> {
        let mut periods = self.periods.lock().unwrap_or_else(PoisonError::into_inner);
        periods.turn(day);
        periods
    }

    /// Records what a request consumed, in place of what was `reserved` for it. Returns the total spending.
    pub(crate) fn settle(&self, day: Day, spent: Spent, reserved: Spent) -> SpentSoFar {
        let mut periods = self.lock(day);
        periods.reserved = periods.reserved.without(reserved);
        periods.today.add(spent);
        periods.month.add(spent);
        periods.so_far()
    }

    /// Adopts the spending that the store or the shared counters report, because other processes spend, too. Recent spending of
    /// this process may not be included yet, so amounts only grow; once it has been reported, they contain the sum.
    pub(crate) fn follow(&self, SpentSoFar { day, today, month }: SpentSoFar) {
        let mut periods = self.periods.lock().unwrap_or_else(PoisonError::into_inner);
        // Reported for a day before midnight.
        if day < periods.day {
            return;
        }
        periods.turn(day);
        (periods.today, periods.month) = (periods.today.max(today), periods.month.max(month));
    }

    /// What was spent today and this month.
    pub(crate) fn read(&self, day: Day) -> SpentSoFar {
        self.lock(day).so_far()
    }

    /// Reserves what a request is expected to consume, if `check` allows it, given what was spent today and this month, and what
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
        let so_far = |day, today, month| SpentSoFar { day, today, month };
        let add = |day| spending.settle(day, some, Spent::default());
        let (thirtieth, next, august) = (day("2026-07-30"), day("2026-07-31"), day("2026-08-01"));
        assert_eq!(add(thirtieth), so_far(thirtieth, twice, twice));
        assert_eq!(spending.read(thirtieth), so_far(thirtieth, twice, twice));
        assert_eq!(spending.read(next), so_far(next, Spent::default(), twice));
        assert_eq!(add(august), so_far(august, some, some));
    }

    #[test]
    fn what_other_processes_spent_is_taken_over_and_nothing_is_forgotten() {
        let day = |text: &str| text.parse::<Day>().expect("a day");
        let (little, much) = (Spent { tokens: 5, cost: 9 }, Spent { tokens: 10, cost: 3 });
        let spending = Spending::since(day("2026-07-30"), little, little);
        let so_far = |day, today, month| SpentSoFar { day, today, month };
        let (before, after) = (day("2026-07-30"), day("2026-07-31"));
        spending.follow(so_far(before, much, much));
        let both = Spent { tokens: 10, cost: 9 };
        assert_eq!(spending.read(before), so_far(before, both, both));
        assert_eq!(spending.read(after), so_far(after, Spent::default(), both));
        // What was read before midnight says nothing about the new day.
        spending.follow(so_far(before, much, much));
        assert_eq!(spending.read(after), so_far(after, Spent::default(), both));
        spending.follow(so_far(after, little, both));
        assert_eq!(spending.read(after), so_far(after, little, both));
    }
}
