//! Dates and times of RFC 3339.

use crate::scan;

/// Whether a text is an RFC 3339 date and time. A leap second is valid if it is the last second of a day in
/// UTC.
pub(super) fn is_date_time(text: &str) -> bool {
    let mut bytes = text.as_bytes().to_vec();
    bytes.make_ascii_uppercase();
    if scan::date_time(&bytes).is_some() {
        return true;
    }
    // The rest is validated with the preceding second, like any other time.
    let Some(seconds) = bytes.get_mut(17..19).filter(|seconds| *seconds == b"60") else { return false };
    seconds.copy_from_slice(b"59");
    scan::date_time(&bytes).is_some() && minute_of_day(&bytes) == Some(23 * 60 + 59)
}

/// The minute in UTC of a valid date and time.
fn minute_of_day(text: &[u8]) -> Option<i32> {
    let minutes = |text: &[u8]| {
        let digit = |at: usize| text.get(at).map(|digit| i32::from(digit - b'0'));
        Some((digit(0)? * 10 + digit(1)?) * 60 + digit(3)? * 10 + digit(4)?)
    };
    let local = minutes(text.get(11..16)?)?;
    let offset = match text.split_last_chunk::<6>() {
        Some((_, [b'+', zone @ ..])) => minutes(zone)?,
        Some((_, [b'-', zone @ ..])) => -minutes(zone)?,
        _ => 0,
    };
    Some((local - offset).rem_euclid(24 * 60))
}
