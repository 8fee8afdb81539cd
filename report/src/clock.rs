//! Times of a report, in RFC 3339 as in `generated_at`.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The current time in UTC, to the second, in the format of `generated_at`: `2026-01-02T03:04:05Z`.
///
/// ```
/// assert_eq!(gatewright_report::now().len(), "2026-01-02T03:04:05Z".len());
/// ```
#[expect(clippy::missing_panics_doc, reason = "fails only past the year 9999")]
pub fn now() -> String {
    let now = OffsetDateTime::now_utc().replace_nanosecond(0).expect("0 is a nanosecond");
    now.format(&Rfc3339).expect("the year has four digits")
}

/// Nanoseconds since 1970 of a `generated_at`, for sorting reports; `None` if it is not a date.
pub(crate) fn instant(generated_at: &str) -> Option<i128> {
    OffsetDateTime::parse(generated_at, &Rfc3339).ok().map(OffsetDateTime::unix_timestamp_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_time_parses_back() {
        let now = now();
        assert_eq!((now.len(), now.ends_with('Z')), (20, true), "{now}");
        assert!(instant(&now).is_some_and(|at| at > 1_700_000_000 * 1_000_000_000));
    }

    #[test]
    fn instants_compare_across_offsets_fractions_and_leap_seconds() {
        let at = |text| instant(text).expect(text);
        assert_eq!(at("2026-01-02T03:04:05+01:00"), at("2026-01-02T02:04:05Z"));
        assert!(at("2026-01-02T03:04:05.5Z") > at("2026-01-02t03:04:05z"));
        assert!(at("2016-12-31T23:59:60Z") > at("2016-12-31T23:59:59Z"));
        assert_eq!(instant("yesterday"), None);
    }
}
