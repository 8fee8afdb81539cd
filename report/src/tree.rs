//! The parsed document: values with their byte spans, and access for the schema validator.
//!
//! The validator reads this tree in place (trait `Json` of the jsonschema crate), so a report is parsed once and never
//! copied. Numbers keep their text, so integers are recognised exactly.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, JsonNumber, Node as SchemaNode, NodeIdentity, Object};

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

    /// The value at a JSON Pointer.
    pub(crate) fn at(&self, pointer: &str) -> Option<&Node<'a>> {
        pointer.split('/').skip(1).try_fold(self, |node, step| match &node.value {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            Value::Object(_) => node.get(&step.replace("~1", "/").replace("~0", "~")),
            _ => None,
        })
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

    /// Written with digits alone.
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
            return self.0.parse().ok();
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

impl JsonNumber for Number<'_> {
    fn as_u64(&self) -> Option<u64> {
        self.as_integer().and_then(|integer| u64::try_from(integer).ok())
    }

    fn as_i64(&self) -> Option<i64> {
        self.as_integer().and_then(|integer| i64::try_from(integer).ok())
    }

    fn as_f64(&self) -> Option<f64> {
        let nearest: f64 = self.0.parse().ok()?;
        if nearest == 0.0 && !self.decimal().digits.is_empty() {
            // Too small for a double, but not 0: comparisons must distinguish it from 0.
            return Some(f64::from_bits(1).copysign(nearest));
        }
        Some(nearest)
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0)
    }

    fn to_number(&self) -> Cow<'_, serde_json::Number> {
        let exact = self.as_u64().map(Into::into).or_else(|| self.as_i64().map(Into::into));
        let number = exact.or_else(|| self.as_f64().and_then(serde_json::Number::from_f64));
        Cow::Owned(number.expect("the reader refuses numbers that are not finite"))
    }

    fn is_integer(&self) -> bool {
        self.is_plain() || self.decimal().exponent >= 0
    }
}

/// The tree as a representation of JSON for the schema validator.
pub(crate) struct Tree;

impl Json for Tree {
    type Node<'a> = &'a Node<'a>;
    type PreparedKey = Box<str>;
    type StringBuffer = ();

    fn prepare_key(key: &str) -> Box<str> {
        key.into()
    }

    fn with_string_node<T>((): &mut (), string: &str, f: impl for<'n> FnOnce(&'n Node<'n>) -> T) -> T {
        f(&Node { value: Value::String(Cow::Borrowed(string)), start: 0, end: 0 })
    }
}

impl<'a> SchemaNode<'a, Tree> for &'a Node<'a> {
    type Object = &'a [Member<'a>];
    type Array = &'a [Node<'a>];
    type Number = Number<'a>;

    fn as_object(&self) -> Option<&'a [Member<'a>]> {
        match &self.value {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    fn as_array(&self) -> Option<&'a [Node<'a>]> {
        match &self.value {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        match &self.value {
            Value::String(string) => Some(Cow::Borrowed(string)),
            _ => None,
        }
    }

    fn as_number(&self) -> Option<Number<'a>> {
        match self.value {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        match self.value {
            Value::Bool(boolean) => Some(boolean),
            _ => None,
        }
    }

    fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    fn json_type(&self) -> JsonType {
        match self.value {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &serde_json::Value) -> bool {
        match (&self.value, expected) {
            (Value::Null, serde_json::Value::Null) => true,
            (Value::Bool(left), serde_json::Value::Bool(right)) => left == right,
            (Value::Number(left), serde_json::Value::Number(right)) => {
                left.decimal() == Number::new(&right.to_string()).decimal()
            }
            (Value::String(left), serde_json::Value::String(right)) => left == right,
            // The schema of the report has no constant arrays or objects.
            _ => false,
        }
    }

    /// Scalars as they are, containers empty. The validator calls this only for the instance in its errors. Diagnostics
    /// do not use that instance: they look up the pointer in this tree.
    fn to_value(&self) -> Cow<'a, serde_json::Value> {
        Cow::Owned(match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(boolean) => (*boolean).into(),
            Value::Number(number) => serde_json::Value::Number(number.to_number().into_owned()),
            Value::String(_) => serde_json::Value::String(String::new()),
            Value::Array(_) => serde_json::Value::Array(Vec::new()),
            Value::Object(_) => serde_json::Value::Object(serde_json::Map::new()),
        })
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref::<Node<'_>>(*self) as usize))
    }
}

impl<'a> Object<'a, Tree> for &'a [Member<'a>] {
    type Node = &'a Node<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        <[Member<'_>]>::len(self)
    }

    fn get(&self, key: &Box<str>) -> Option<&'a Node<'a>> {
        self.iter().find(|member| member.name == **key).map(|member| &member.node)
    }

    fn members(&self) -> Members<'a> {
        Members(self.iter())
    }
}

/// Names and values of an object, in document order.
pub(crate) struct Members<'a>(std::slice::Iter<'a, Member<'a>>);

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, &'a Node<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|member| (member.name.as_ref(), &member.node))
    }
}

impl<'a> Array<'a, Tree> for &'a [Node<'a>] {
    type Node = &'a Node<'a>;
    type ElementsIter = std::slice::Iter<'a, Node<'a>>;

    fn len(&self) -> usize {
        <[Node<'_>]>::len(self)
    }

    fn elements(&self) -> std::slice::Iter<'a, Node<'a>> {
        self.iter()
    }

    fn is_unique(&self) -> bool {
        first_equal_pair(self).is_none()
    }
}
