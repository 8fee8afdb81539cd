//! Numbers in lists, which are accepted only if they make sense.

use serde_json::{Map, Value};

/// Members of an entry.
pub(super) type Members = Map<String, Value>;

/// Maximum price of a million tokens or characters. The most expensive models cost less than a tenth of it: more is a unit
/// mistake.
const MAX_TOKEN_PRICE: f64 = 10_000.0;
/// Maximum price of an image and of a second of video or sound.
const MAX_MEDIA_PRICE: f64 = 1_000.0;
/// Maximum number of tokens of a limit.
const MAX_LIMIT: u64 = 1_000_000_000;
/// The smallest amount: a billionth of the currency.
const BILLIONTH: f64 = 1e-9;

/// The unit of a price in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PriceUnit {
    Token,
    MillionTokens,
    Character,
    ImageOrSecond,
}

/// The price of a million tokens or characters, or of an image or a second. `None`: the entry doesn't state it. Errors: it states
/// something else.
pub(super) fn price(members: &Members, name: &str, unit: PriceUnit) -> Result<Option<f64>, String> {
    let number = match members.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value.as_f64().ok_or_else(|| format!("{name} is not a number"))?,
    };
    let (amount, most) = match unit {
        PriceUnit::Token | PriceUnit::Character => (number * 1e6, MAX_TOKEN_PRICE),
        PriceUnit::MillionTokens => (number, MAX_TOKEN_PRICE),
        PriceUnit::ImageOrSecond => (number, MAX_MEDIA_PRICE),
    };
    if amount < 0.0 {
        return Err(format!("{name} is negative"));
    }
    if amount > most {
        let each = match unit {
            PriceUnit::ImageOrSecond => "each",
            PriceUnit::Character => "per million characters",
            PriceUnit::Token | PriceUnit::MillionTokens => "per million tokens",
        };
        return Err(format!("{name} is more than {most} {each}"));
    }
    // The conversion error is smaller than this.
    let rounded = (amount / BILLIONTH).round();
    if amount > 0.0 && rounded < 1.0 {
        return Err(format!("{name} is less than a billionth"));
    }
    Ok(Some(rounded / 1e9))
}

/// A number of tokens. `None`: the entry doesn't state it, or states 0 for unknown.
pub(super) fn limit(members: &Members, name: &str) -> Result<Option<u64>, String> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match whole(value) {
            Some(0) => Ok(None),
            Some(tokens) if tokens <= MAX_LIMIT => Ok(Some(tokens)),
            _ => Err(format!("{name} is not a number of tokens up to {MAX_LIMIT}")),
        },
    }
}

/// A whole number, possibly written with a decimal point or an exponent.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is whole and within the range"
)]
pub(super) fn whole(value: &Value) -> Option<u64> {
    let written = || {
        let number = value.as_f64()?;
        let is_whole = number.fract() == 0.0 && (0.0..=1e15).contains(&number);
        is_whole.then_some(number as u64)
    };
    value.as_u64().or_else(written)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value, unit: PriceUnit) -> Result<Option<f64>, String> {
        price(&Members::from_iter([("p".to_owned(), value)]), "p", unit)
    }

    #[test]
    fn token_price_becomes_exact_price_per_million() {
        for (token, million) in
            [(2.5e-6, 2.5), (1.5e-7, 0.15), (7.5e-8, 0.075), (3.125e-8, 0.031_25), (6e-4, 600.0)]
        {
            assert_eq!(read(json!(token), PriceUnit::Token), Ok(Some(million)));
        }
        assert_eq!(
            read(json!(5.000_000_000_000_001e-7), PriceUnit::Token),
            Ok(Some(0.5)),
            "noise of the list"
        );
        assert_eq!(read(json!(0.1 + 0.2), PriceUnit::MillionTokens), Ok(Some(0.3)));
        assert_eq!(read(json!(0), PriceUnit::Token), Ok(Some(0.0)));
        assert_eq!(read(Value::Null, PriceUnit::Token), Ok(None));
    }

    #[test]
    fn implausible_price_is_rejected_by_name() {
        let why = |value, unit| read(value, unit).expect_err("implausible");
        assert_eq!(why(json!(-1e-6), PriceUnit::Token), "p is negative");
        assert_eq!(why(json!("0.1"), PriceUnit::Token), "p is not a number");
        assert_eq!(why(json!(2.5), PriceUnit::Token), "p is more than 10000 per million tokens");
        assert_eq!(why(json!(1e-17), PriceUnit::Token), "p is less than a billionth");
        assert_eq!(why(json!(5000), PriceUnit::ImageOrSecond), "p is more than 1000 each");
    }

    #[test]
    fn token_limits_are_integers_and_zero_means_unknown() {
        let read = |value: Value| limit(&Members::from_iter([("l".to_owned(), value)]), "l");
        assert_eq!(read(json!(128_000)), Ok(Some(128_000)));
        assert_eq!(read(json!(1e6)), Ok(Some(1_000_000)));
        assert_eq!((read(json!(0)), read(Value::Null)), (Ok(None), Ok(None)));
        for value in [json!(-1), json!(1.5), json!("8k"), json!(1e12)] {
            assert!(
                read(value.clone()).is_err_and(|why| why.starts_with("l is not a number of tokens")),
                "{value}"
            );
        }
    }
}
