//! The parsed document: values with their byte spans.
//!
//! Numbers keep their text, so integers are recognised exactly.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Write as _};

/// One value and its byte span.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) value: Value<'a>,
    // Documents are limited to far below 4 GiB (`validate::MAX_BYTES_LIMIT`).
    start: u32,
    end: u32,
}

#[derive(Debug)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Number(Number<'a>),
    String(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    Object(Vec<Member<'a>>),
    /// An object that the checker is sure of, for which no tree is built.
    Sound(CheckCell),
}

/// The id and the model of a check, by their indices.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CheckCell {
    pub(crate) id: u16,
    pub(crate) model: u16,
}

/// One member of an object: name and value.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    pub(crate) name: Cow<'a, str>,
    name_start: u32,
    pub(crate) node: Node<'a>,
}

/// A JSON number, as written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number<'a>(&'a str);

fn offset(at: usize) -> u32 {
    u32::try_from(at).expect("documents are bounded below 4 GiB")
}

impl<'a> Node<'a> {
    pub(crate) fn new(value: Value<'a>, start: usize, end: usize) -> Self {
        Self { value, start: offset(start), end: offset(end) }
    }

    /// Byte offset of the first byte of the value.
    pub(crate) fn start(&self) -> usize {
        self.start as usize
    }

    /// Byte offset after the last byte of the value.
    pub(crate) fn end(&self) -> usize {
        self.end as usize
    }

    /// The value of a member, if this is an object with that member.
    pub(crate) fn get(&self, name: &str) -> Option<&Node<'a>> {
        self.members().iter().find(|member| member.name == name).map(|member| &member.node)
    }

    pub(crate) fn members(&self) -> &[Member<'a>] {
        match &self.value {
            Value::Object(members) => members,
            _ => &[],
        }
    }

    pub(crate) fn items(&self) -> &[Node<'a>] {
        match &self.value {
            Value::Array(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(string) => Some(string),
            _ => None,
        }
    }

    pub(crate) fn as_count(&self) -> Option<u64> {
        match &self.value {
            Value::Number(number) => number.as_u64(),
            _ => None,
        }
    }

    /// Writes a text that is the same exactly for equal values: numbers by value, members sorted by name.
    fn canonical(&self, text: &mut String) -> fmt::Result {
        match &self.value {
            Value::Null => text.write_str("null"),
            Value::Bool(boolean) => write!(text, "{boolean}"),
            Value::Number(number) => {
                let Decimal { negative, digits, exponent } = number.decimal();
                write!(text, "{}{digits}e{exponent}", if negative { "-" } else { "" })
            }
            Value::String(string) => write!(text, "{string:?}"),
            Value::Array(items) => {
                text.write_str("[")?;
                for item in items {
                    item.canonical(text)?;
                    text.write_str(",")?;
                }
                text.write_str("]")
            }
            Value::Object(members) => {
                let mut sorted: Vec<&Member<'_>> = members.iter().collect();
                sorted.sort_by(|left, right| left.name.cmp(&right.name));
                text.write_str("{")?;
                for member in sorted {
                    write!(text, "{:?}:", member.name)?;
                    member.node.canonical(text)?;
                    text.write_str(",")?;
                }
                text.write_str("}")
            }
            // Only lists of texts must have unique items.
            Value::Sound(_) => text.write_str("{…}"),
        }
    }
}

impl<'a> Member<'a> {
    pub(crate) fn new(name: Cow<'a, str>, name_start: usize, node: Node<'a>) -> Self {
        Self { name, name_start: offset(name_start), node }
    }

    /// Byte offset of the name's opening quote.
    pub(crate) fn name_start(&self) -> usize {
        self.name_start as usize
    }
}

/// The indices of the first repeated item, that of its earlier equal first.
pub(crate) fn first_equal_pair(items: &[Node<'_>]) -> Option<(usize, usize)> {
    if items.len() < 2 {
        return None;
    }
    let all_strings = items.iter().all(|item| item.as_str().is_some());
    let mut keys: Vec<(Cow<'_, str>, usize)> = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let key = match item.as_str() {
            Some(string) if all_strings => Cow::Borrowed(string),
            _ => {
                let mut text = String::new();
                item.canonical(&mut text).expect("writing to a string succeeds");
                Cow::Owned(text)
            }
        };
        keys.push((key, index));
    }
    keys.sort_unstable();
    let repeated = keys.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    repeated.map(|pair| (pair[0].1, pair[1].1)).min_by_key(|pair| pair.1)
}

/// `digits × 10^exponent`, the digits without zeros at either end; zero has no digits and exponent 0.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl<'a> Number<'a> {
    /// `text` follows the grammar of JSON numbers.
    pub(crate) fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// The number as written.
    pub(crate) fn text(self) -> &'a str {
        self.0
    }

    /// Whether a double can hold its magnitude.
    pub(crate) fn is_finite(self) -> bool {
        // Numbers of fewer than 300 digits overflow only by their exponent.
        (self.0.len() < 300 && self.is_plain()) || self.0.parse::<f64>().is_ok_and(f64::is_finite)
    }

    /// Whether it is written only with digits.
    pub(crate) fn is_plain(self) -> bool {
        !self.0.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
    }

    fn decimal(self) -> Decimal {
        let (negative, text) = match self.0.strip_prefix('-') {
            Some(text) => (true, text),
            None => (false, self.0),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        // Exponents beyond i64 belong to zero, or to magnitudes far outside every comparison here.
        let exponent = exponent.parse::<i64>().unwrap_or(if exponent.starts_with('-') {
            i64::MIN / 2
        } else {
            i64::MAX / 2
        });
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0').trim_end_matches('0');
        if digits.is_empty() {
            return Decimal { negative: false, digits: String::new(), exponent: 0 };
        }
        let trailing = all.len() - all.trim_end_matches('0').len();
        let shift = i64::try_from(trailing).unwrap_or(0) - i64::try_from(fraction.len()).unwrap_or(0);
        Decimal { negative, digits: digits.to_owned(), exponent: exponent.saturating_add(shift) }
    }

    /// The value, if it is an integer that fits.
    pub(crate) fn as_integer(self) -> Option<i128> {
        if self.is_plain() {
            // Most numbers are short.
            let short = self.0.parse::<i64>().ok().map(i128::from);
            return short.or_else(|| self.0.parse().ok());
        }
        let decimal = self.decimal();
        if decimal.digits.is_empty() {
            return Some(0);
        }
        // A negative exponent leaves a fraction: no power of ten, and no integer.
        let power = 10_i128.checked_pow(u32::try_from(decimal.exponent).ok()?)?;
        let magnitude = decimal.digits.parse::<i128>().ok()?.checked_mul(power)?;
        Some(if decimal.negative { -magnitude } else { magnitude })
    }
}

impl Number<'_> {
    /// The value of an integer, or the nearest one that fits; 0 for numbers that are not integers.
    pub(crate) fn saturating(self) -> i128 {
        match self.as_integer() {
            Some(integer) => integer,
            None if !self.is_integer() => 0,
            None if self.0.starts_with('-') => i128::MIN,
            None => i128::MAX,
        }
    }
}

impl Number<'_> {
    pub(crate) fn as_u64(self) -> Option<u64> {
        self.as_integer().and_then(|integer| u64::try_from(integer).ok())
    }

    /// The nearest double.
    pub(crate) fn as_f64(self) -> Option<f64> {
        let nearest: f64 = self.0.parse().ok()?;
        if nearest == 0.0 && !self.decimal().digits.is_empty() {
            // Too small for a double, but not 0: comparisons must distinguish it from 0.
            return Some(f64::from_bits(1).copysign(nearest));
        }
        Some(nearest)
    }

    pub(crate) fn is_integer(self) -> bool {
        self.is_plain() || self.decimal().exponent >= 0
    }

    /// Whether the values are the same, however they are written.
    pub(crate) fn equals(self, other: Number<'_>) -> bool {
        self.0 == other.0 || self.decimal() == other.decimal()
    }

    /// The order of the value and a limit that a double holds exactly.
    pub(crate) fn compared_with(self, limit: &serde_json::Number) -> Ordering {
        if let (Some(value), Some(limit)) = (self.as_integer(), limit.as_i128()) {
            return value.cmp(&limit);
        }
        let order = self.as_f64().zip(limit.as_f64()).and_then(|(value, limit)| value.partial_cmp(&limit));
        order.expect("the reader refuses numbers that are not finite")
    }
}
