//! Days, by which usage is recorded.

use std::fmt;
use std::str::FromStr;

use gatewright_system::clock::unix_seconds;
use time::format_description::well_known::Iso8601;
use time::{Date, Duration, OffsetDateTime};

/// A day in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(Date);

impl Day {
    /// The current day.
    pub fn today() -> Self {
        Self::of(unix_seconds())
    }

    /// The day of a time in seconds since 1970.
    pub fn of(seconds: u64) -> Self {
        let time = i64::try_from(seconds).ok().and_then(|at| OffsetDateTime::from_unix_timestamp(at).ok());
        Self(time.map_or(Date::MAX, OffsetDateTime::date))
    }

    /// The number of the day, in the count of Julian days.
    pub fn number(self) -> i32 {
        self.0.to_julian_day()
    }

    /// The day with a [`number`](Self::number). None: there is no such day.
    pub fn of_number(number: i32) -> Option<Self> {
        Date::from_julian_day(number).ok().map(Self)
    }

    /// The first day of the same month.
    #[must_use]
    pub fn month(self) -> Self {
        Self(self.0.replace_day(1).unwrap_or(self.0))
    }

    /// The day this many days earlier.
    #[must_use]
    pub fn before(self, days: u32) -> Self {
        Self(self.0.saturating_sub(Duration::days(days.into())))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.format(&Iso8601::DATE).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Day {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Date::parse(text, &Iso8601::DATE).map(Self).map_err(|_| "must be a day such as 2026-07-31")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn day_round_trips_as_a_date() {
        let day = Day::of(1_785_542_399);
        assert_eq!(day.to_string(), "2026-07-31");
        assert_eq!(day.to_string().parse(), Ok(day));
        assert_eq!((Day::of_number(day.number()), Day::of_number(i32::MAX)), (Some(day), None));
        assert_eq!(Day::of(1_785_542_400).to_string(), "2026-08-01");
        assert_eq!(
            (day.month().to_string(), day.before(31).to_string()),
            ("2026-07-01".into(), "2026-06-30".into())
        );
        assert!("31.07.2026".parse::<Day>().is_err() && "2026-02-30".parse::<Day>().is_err());
    }
}
