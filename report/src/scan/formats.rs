//! Scanners of formats and lengths: they accept the usual notations, and never anything that the schema's validator
//! rejects.

/// Whether a text as written, with valid escapes, has this many code points.
#[inline]
pub(crate) fn has_length(text: &[u8], least: usize, most: usize) -> Option<()> {
    let is_sure = (least == 0 || (least == 1 && !text.is_empty())) && text.len() <= most;
    (is_sure || (least..=most).contains(&code_points(text))).then_some(())
}

/// The number of code points; an escape counts as one, and so does a pair of escaped surrogates.
#[cold]
fn code_points(text: &[u8]) -> usize {
    let mut count = 0;
    let mut rest = text;
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'\\', [b'u', b'd' | b'D', b'8' | b'9' | b'a'..=b'b' | b'A'..=b'B', ..]) => {
                rest = after.get(11..).unwrap_or_default();
            }
            (b'\\', [b'u', ..]) => rest = after.get(5..).unwrap_or_default(),
            (b'\\', _) => rest = after.get(1..).unwrap_or_default(),
            // Only the first byte of a character counts, not its continuation bytes.
            (0x80..=0xbf, _) => continue,
            _ => {}
        }
        count += 1;
    }
    count
}

/// Whether a text begins with these characters: each from the first to the second, and repeated if the third says so.
#[inline]
pub(crate) fn begins(text: &[u8], with: &[(u8, u8, bool)]) -> Option<()> {
    let mut rest = text;
    for &(low, high, repeated) in with {
        let fits = |byte: &u8| (low..=high).contains(byte);
        rest = rest.split_first().filter(|(first, _)| fits(first))?.1;
        while repeated && rest.first().is_some_and(fits) {
            rest = rest.get(1..)?;
        }
    }
    Some(())
}

/// Whether a text is an RFC 3339 date and time, without a leap second.
pub(crate) fn date_time(text: &[u8]) -> Option<()> {
    let (year, rest) = number::<4>(text)?;
    let (month, rest) = number::<2>(rest.strip_prefix(b"-")?)?;
    let (day, rest) = number::<2>(rest.strip_prefix(b"-")?)?;
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => return None,
    };
    let (hour, rest) = number::<2>(rest.strip_prefix(b"T")?)?;
    let (minute, rest) = number::<2>(rest.strip_prefix(b":")?)?;
    let (second, mut rest) = number::<2>(rest.strip_prefix(b":")?)?;
    if let Some(fraction) = rest.strip_prefix(b".") {
        let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        rest = fraction.get(digits..).filter(|_| digits > 0)?;
    }
    let zone_is_sound = match rest {
        b"Z" => true,
        [b'+' | b'-', zone @ ..] => {
            let (hours, zone) = number::<2>(zone)?;
            let (minutes, zone) = number::<2>(zone.strip_prefix(b":")?)?;
            zone.is_empty() && hours < 24 && minutes < 60
        }
        _ => false,
    };
    let is_sound = (1..=days).contains(&day) && hour < 24 && minute < 60 && second < 60;
    (is_sound && zone_is_sound).then_some(())
}

/// The number in the first `DIGITS` digits, and the text after them.
fn number<const DIGITS: usize>(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_first_chunk::<DIGITS>()?;
    let value =
        digits.iter().try_fold(0, |value, digit| Some(value * 10 + char::from(*digit).to_digit(10)?))?;
    Some((value, rest))
}

/// Whether a text is an absolute URI with a host that is a name or an IPv4 address, without a user name or password, and
/// without percent-encodings.
pub(crate) fn uri(text: &[u8]) -> Option<()> {
    let length = text.iter().position(|byte| !byte.is_ascii_alphanumeric())?;
    let (scheme, rest) = text.split_at_checked(length)?;
    let rest = rest.strip_prefix(b"://").filter(|_| scheme.first().is_some_and(u8::is_ascii_alphabetic))?;
    let is_host = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let host = rest.iter().take_while(|byte| is_host(byte)).count();
    let mut rest = rest.get(host..).filter(|_| host > 0)?;
    if let Some(port) = rest.strip_prefix(b":") {
        let digits = port.iter().take_while(|byte| byte.is_ascii_digit()).count();
        rest = port.get(digits..)?;
    }
    let is_path = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(byte);
    let is_sound = match rest {
        [] => true,
        [b'/', path @ ..] => path.iter().all(is_path),
        _ => false,
    };
    is_sound.then_some(())
}
