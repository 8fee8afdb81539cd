//! Human-readable times and sizes: `"10s"`, `"500ms"`, `"5m"`; `"10MiB"`.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

/// Units of time, in milliseconds.
const TIMES: [(&str, f64); 4] = [("ms", 1.0), ("s", 1_000.0), ("m", 60_000.0), ("h", 3_600_000.0)];
/// Units of size, in bytes.
const SIZES: [(&str, f64); 7] = [
    ("B", 1.0),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];
/// The format of a quantity without its unit. The number of digits bounds the value.
const NUMBER: &str = r"[0-9]{1,9}(\.[0-9]{1,3})?";

const TIME: &str = r#"must be a time with a unit, such as "10s", "500ms", "5m" or "1h""#;
const SIZE: &str = r#"must be a size with a unit, such as "10MiB" or "64KB""#;

/// A time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Time(pub(super) Duration);

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Size(pub(super) usize);

impl TryFrom<String> for Time {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let seconds = quantity(&text, &TIMES).ok_or(TIME)? / 1_000.0;
        Duration::try_from_secs_f64(seconds).map(Self).map_err(|_| TIME)
    }
}

impl TryFrom<String> for Size {
    type Error = &'static str;

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative; what a size may be is checked later, and a cast saturates"
    )]
    fn try_from(text: String) -> Result<Self, Self::Error> {
        quantity(&text, &SIZES).map(|bytes| Self(bytes as usize)).ok_or(SIZE)
    }
}

/// The value of a number with its unit.
fn quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let at = text.find(|character: char| character.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(at);
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    let plain = number.starts_with(|first: char| first.is_ascii_digit());
    number.parse::<f64>().ok().filter(|_| plain).map(|number| number * factor)
}

/// The schema for a number with one of these units; `message` is for invalid values.
fn schema(units: &[(&str, f64)], message: &str) -> Schema {
    let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
    let pattern = format!("^{NUMBER}({})$", names.join("|"));
    json_schema!({ "type": "string", "pattern": pattern, "errorMessage": message })
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema(&TIMES, TIME)
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema(&SIZES, SIZE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_require_a_unit() {
        let time = |text: &str| Time::try_from(text.to_owned()).ok().map(|time| time.0);
        assert_eq!(time("10s"), Some(Duration::from_secs(10)));
        assert_eq!(time("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(time("1.5m"), Some(Duration::from_secs(90)));
        assert_eq!(time("0s"), Some(Duration::ZERO));
        for wrong in ["", "10", "s", "10 s", "-1s", "1e3s", "10S", "infs", ".5s", "+1s"] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
        let size = |text: &str| Size::try_from(text.to_owned()).ok().map(|size| size.0);
        assert_eq!(size("10MiB"), Some(10 * 1024 * 1024));
        assert_eq!(size("64KB"), Some(64_000));
        assert_eq!(size("1.5GiB"), Some(1_610_612_736));
        assert_eq!(size("10mb"), None);
    }
}
