//! What a key has spent today and this month.

use std::sync::{Mutex, MutexGuard, PoisonError};

use gatewright_store::{Day, Spent, SpentSoFar};

/// Maximum number of days that are remembered in addition to the current one, for a clock that is set back.
const MAX_OTHER_DAYS: usize = 4;

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
    /// Other days that the clock has shown, and what was spent on them. The latest one that it left is last.
    others: Vec<SpentSoFar>,
}

impl Periods {
    /// Starts a day, and a month if the day is in another month. If the clock returns to an earlier day or month, its
    /// amounts continue.
    fn turn(&mut self, day: Day) {
        if self.day == day {
            return;
        }
        let left = self.so_far();
        self.others.push(left);
        let same_month = self.others.iter().filter(|other| other.day.month() == day.month());
        self.month = same_month.fold(Spent::default(), |month, other| month.max(other.month));
        let before = self.others.iter().position(|other| other.day == day);
        self.today = before.map_or_else(Spent::default, |at| self.others.remove(at).today);
        self.day = day;
        self.forget();
    }

    /// Records spending on a day that isn't the current one.
    fn note(&mut self, so_far: SpentSoFar) {
        match self.others.iter_mut().find(|other| other.day == so_far.day) {
            Some(other) => {
                (other.today, other.month) = (other.today.max(so_far.today), other.month.max(so_far.month));
            }
            None => self.others.push(so_far),
        }
        self.forget();
    }

    fn forget(&mut self) {
        let surplus = self.others.len().saturating_sub(MAX_OTHER_DAYS);
        self.others.drain(..surplus);
    }

    fn so_far(&self) -> SpentSoFar {
        SpentSoFar { day: self.day, today: self.today, month: self.month }
    }
}

impl Spending {
    /// Creates it with what was spent on a day, and in the month up to and including that day.
    pub(crate) fn since(day: Day, today: Spent, month: Spent) -> Self {
        Self {
            periods: Mutex::new(Periods {
                day,
                today,
                month,
                reserved: Spent::default(),
                others: Vec::new(),
            }),
        }
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
    pub(crate) fn follow(&self, so_far: SpentSoFar) {
        let SpentSoFar { day, today, month } = so_far;
        let mut periods = self.periods.lock().unwrap_or_else(PoisonError::into_inner);
        // Reported for a day before midnight, or for the day to which the clock has returned.
        if day < periods.day {
            return periods.note(so_far);
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
    fn day_and_month_start_at_zero() {
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
    fn spending_of_other_processes_is_adopted_and_never_decreases() {
        let day = |text: &str| text.parse::<Day>().expect("a day");
        let (little, much) = (Spent { tokens: 5, cost: 9 }, Spent { tokens: 10, cost: 3 });
        let spending = Spending::since(day("2026-07-30"), little, little);
        let so_far = |day, today, month| SpentSoFar { day, today, month };
        let (before, after) = (day("2026-07-30"), day("2026-07-31"));
        spending.follow(so_far(before, much, much));
        let both = Spent { tokens: 10, cost: 9 };
        assert_eq!(spending.read(before), so_far(before, both, both));
        assert_eq!(spending.read(after), so_far(after, Spent::default(), both));
        // Spending read before midnight is not about the new day.
        spending.follow(so_far(before, much, much));
        assert_eq!(spending.read(after), so_far(after, Spent::default(), both));
        spending.follow(so_far(after, little, both));
        assert_eq!(spending.read(after), so_far(after, little, both));
    }

    /// An amount of tokens without a cost.
    fn tokens(tokens: u64) -> Spent {
        Spent { tokens, cost: 0 }
    }

    #[test]
    fn spending_of_a_day_resumes_when_the_clock_returns_to_it() {
        let day = |text: &str| text.parse::<Day>().expect("a day");
        let (thirtieth, next, august) = (day("2026-07-30"), day("2026-07-31"), day("2026-08-01"));
        let spending = Spending::since(thirtieth, tokens(10), tokens(50));
        let spent = |day| {
            let SpentSoFar { today, month, .. } = spending.read(day);
            (today.tokens, month.tokens)
        };
        assert_eq!(spent(next), (0, 50));
        spending.settle(next, tokens(7), Spent::default());
        assert_eq!(spent(august), (0, 0));
        spending.settle(august, tokens(3), Spent::default());
        // However often the clock goes back and forth.
        for _ in 0..10 {
            assert_eq!((spent(thirtieth), spent(next), spent(august)), ((10, 57), (7, 57), (3, 3)));
        }
        spending.settle(thirtieth, tokens(1), Spent::default());
        assert_eq!((spent(august), spent(thirtieth)), ((3, 3), (11, 58)));
        let budget = |today: Spent, _, _| if today.tokens < 10 { Ok(()) } else { Err(()) };
        assert_eq!(spending.reserve(thirtieth, tokens(1), budget), Err(()));
    }

    #[test]
    fn spending_reported_for_an_earlier_day_counts_when_the_clock_returns() {
        let day = |text: &str| text.parse::<Day>().expect("a day");
        // The gateway started with a clock that was a day ahead.
        let spending = Spending::since(day("2026-07-31"), Spent::default(), tokens(30));
        let so_far = SpentSoFar { day: day("2026-07-30"), today: tokens(10), month: tokens(30) };
        spending.follow(so_far);
        assert_eq!(spending.read(day("2026-07-30")), so_far);
    }

    #[test]
    fn jumping_clock_is_remembered_within_bounds() {
        let days: Vec<Day> = (0..100).map(|number| Day::of(number * 86_400)).collect();
        let spending = Spending::since(days[0], tokens(1), tokens(1));
        for day in &days {
            spending.follow(SpentSoFar { day: days[0], today: tokens(1), month: tokens(1) });
            spending.read(*day);
        }
        assert!(spending.periods.lock().expect("no panic").others.len() <= MAX_OTHER_DAYS);
    }
}
