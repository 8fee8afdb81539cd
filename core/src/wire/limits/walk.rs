//! Validates a request against its schema. The walk visits each value once and stops after enough violations, so the
//! work is linear in the size of the request and the memory is bounded.

use serde_json::{Map, Value};

use super::schema::{Additional, REQUESTS, Schema};
use super::words::{brief, plain, size_of, type_of, types};
use super::{MAX_VIOLATIONS, Violation, Violations};

/// Longest pointer, in bytes. A longer one is shortened to an enclosing container.
pub(super) const MAX_POINTER_BYTES: usize = 256;

/// Every rule of the schema that a value violates, up to [`MAX_VIOLATIONS`].
pub(super) fn walk(schema: &Schema, value: &Value) -> Violations {
    let mut walk = Walk::new(MAX_VIOLATIONS);
    walk.value(schema, value, ValuePosition::Root, "ours");
    walk.found
}

/// As [`walk`], for a value that is not the body but a member of this name.
pub(super) fn walk_member(schema: &Schema, name: &str, value: &Value) -> Violations {
    let mut walk = Walk::new(MAX_VIOLATIONS);
    walk.value(schema, value, ValuePosition::Member(&ValuePosition::Root, name), "ours");
    walk.found
}

/// The position of a value. It is kept on the stack, and a pointer is built only for a violation.
#[derive(Clone, Copy)]
enum ValuePosition<'a> {
    Root,
    Member(&'a ValuePosition<'a>, &'a str),
    Item(&'a ValuePosition<'a>, usize),
}

impl ValuePosition<'_> {
    fn pointer(self) -> String {
        let mut steps = Vec::new();
        let mut at = self;
        loop {
            match at {
                ValuePosition::Root => break,
                ValuePosition::Member(parent, name) => {
                    // A name that is already too long need not be escaped.
                    steps.push(
                        (name.len() <= MAX_POINTER_BYTES).then(|| name.replace('~', "~0").replace('/', "~1")),
                    );
                    at = *parent;
                }
                ValuePosition::Item(parent, index) => {
                    steps.push(Some(index.to_string()));
                    at = *parent;
                }
            }
        }
        let mut pointer = String::new();
        for step in steps.into_iter().rev() {
            let Some(step) = step.filter(|step| pointer.len() + 1 + step.len() <= MAX_POINTER_BYTES) else {
                break;
            };
            pointer.push('/');
            pointer.push_str(&step);
        }
        pointer
    }

    /// What the value is called: `temperature`, `messages[0]`, `the body`.
    fn name(self) -> String {
        match self {
            ValuePosition::Root => "the body".to_owned(),
            ValuePosition::Member(_, name) => brief(name),
            ValuePosition::Item(parent, index) => format!("{}[{index}]", parent.name()),
        }
    }
}

struct Walk {
    most: usize,
    found: Violations,
    /// The message of a condition of the schema, which replaces the message of the keyword.
    words: Option<String>,
    /// Number of values visited, so that tests can measure the work.
    visited: usize,
}

impl Walk {
    fn new(most: usize) -> Self {
        Self { most, found: Violations::default(), words: None, visited: 0 }
    }

    /// Whether the walk can stop.
    fn is_over(&self) -> bool {
        self.found.more
    }

    /// Whether a value satisfies a schema; stops at the first rule it violates.
    fn accepts(&mut self, schema: &Schema, value: &Value) -> bool {
        let mut inner = Walk::new(0);
        inner.value(schema, value, ValuePosition::Root, "");
        self.visited += inner.visited;
        !inner.is_over()
    }

    fn find(
        &mut self,
        schema: &Schema,
        rule: &str,
        at: ValuePosition<'_>,
        section: &str,
        message: impl FnOnce() -> String,
    ) -> Option<&mut Violation> {
        if self.found.found.len() >= self.most {
            self.found.more = true;
            return None;
        }
        let section = if schema.ours.iter().any(|ours| ours == rule) { "ours" } else { section };
        self.found.found.push(Violation {
            pointer: at.pointer(),
            rule: rule.to_owned(),
            message: self.words.clone().unwrap_or_else(message),
            section: section.to_owned(),
            missing: None,
        });
        self.found.found.last_mut()
    }

    /// Reports a required member that is missing.
    fn lack(
        &mut self,
        schema: &Schema,
        rule: &str,
        name: Option<&str>,
        at: ValuePosition<'_>,
        section: &str,
        message: impl FnOnce() -> String,
    ) {
        if let Some(found) = self.find(schema, rule, at, section, message) {
            found.missing = name.map(str::to_owned);
        }
    }

    fn value(&mut self, schema: &Schema, value: &Value, at: ValuePosition<'_>, section: &str) {
        self.visited += 1;
        let section = schema.source.as_deref().unwrap_or(section);
        if let Some(referred) = REQUESTS.referred(schema) {
            self.value(referred, value, at, section);
        }
        // A value of the wrong type also violates its other rules; reporting those would not help.
        if !schema.types.is_empty() && !schema.types.iter().any(|kind| kind.admits(value)) {
            let message = || format!("{} is {}, not {}", at.name(), type_of(value), types(&schema.types));
            self.find(schema, "type", at, section, message);
            return;
        }
        self.choices(schema, value, at, section);
        match value {
            Value::Number(number) => {
                self.number(schema, number.as_f64().unwrap_or(f64::NAN), value, at, section);
            }
            Value::String(text) => self.text(schema, text, value, at, section),
            Value::Array(items) => self.array(schema, items, value, at, section),
            Value::Object(members) => self.object(schema, members, value, at, section),
            Value::Null | Value::Bool(_) => {}
        }
        self.combinations(schema, value, at, section);
    }

    fn choices(&mut self, schema: &Schema, value: &Value, at: ValuePosition<'_>, section: &str) {
        if let Some(options) = &schema.options
            && !options.iter().any(|option| is_same(option, value))
        {
            self.find(schema, "enum", at, section, || {
                let options: Vec<String> =
                    options.iter().filter(|option| !option.is_null()).map(plain).collect();
                format!("{} is {}, not one of {}", at.name(), brief(value), options.join(", "))
            });
        }
        if let Some(constant) = &schema.constant
            && !is_same(constant, value)
        {
            self.find(schema, "const", at, section, || {
                format!("{} is {}, not {constant}", at.name(), brief(value))
            });
        }
    }

    fn number(&mut self, schema: &Schema, number: f64, value: &Value, at: ValuePosition<'_>, section: &str) {
        let bounds = [
            ("minimum", schema.minimum, number < schema.minimum.unwrap_or(number), "the minimum is"),
            ("maximum", schema.maximum, number > schema.maximum.unwrap_or(number), "the maximum is"),
            (
                "exclusiveMinimum",
                schema.exclusive_minimum,
                schema.exclusive_minimum.is_some_and(|bound| number <= bound),
                "it must be above",
            ),
            (
                "exclusiveMaximum",
                schema.exclusive_maximum,
                schema.exclusive_maximum.is_some_and(|bound| number >= bound),
                "it must be below",
            ),
        ];
        for (rule, bound, is_broken, words) in bounds {
            if is_broken {
                let bound = bound.unwrap_or_default();
                self.find(schema, rule, at, section, || format!("{} is {value}, {words} {bound}", at.name()));
            }
        }
    }

    fn text(&mut self, schema: &Schema, text: &str, value: &Value, at: ValuePosition<'_>, section: &str) {
        if schema.min_length.is_some() || schema.max_length.is_some() {
            let length = text.chars().count();
            self.size(
                schema,
                ("minLength", schema.min_length),
                ("maxLength", schema.max_length),
                length,
                value,
                at,
                section,
            );
        }
        if let Some(pattern) = &schema.pattern
            && !pattern.admits(value)
        {
            self.find(schema, "pattern", at, section, || {
                format!("{} is {}, not {}", at.name(), brief(value), schema.pattern_words)
            });
        }
        if let Some(format) = schema.format
            && !format.admits(value)
        {
            self.find(schema, "format", at, section, || {
                format!("{} is {}, not a valid {}", at.name(), brief(value), format.name())
            });
        }
    }

    #[expect(clippy::too_many_arguments, reason = "two bounds, and where they are broken")]
    fn size(
        &mut self,
        schema: &Schema,
        least: (&str, Option<usize>),
        most: (&str, Option<usize>),
        size: usize,
        value: &Value,
        at: ValuePosition<'_>,
        section: &str,
    ) {
        if let (rule, Some(least)) = least
            && size < least
        {
            self.find(schema, rule, at, section, || {
                if size == 0 {
                    format!("{} is empty", at.name())
                } else {
                    format!("{} has {}, the minimum is {least}", at.name(), size_of(value))
                }
            });
        }
        if let (rule, Some(most)) = most
            && size > most
        {
            self.find(schema, rule, at, section, || {
                format!("{} has {}, the maximum is {most}", at.name(), size_of(value))
            });
        }
    }

    fn array(
        &mut self,
        schema: &Schema,
        items: &[Value],
        value: &Value,
        at: ValuePosition<'_>,
        section: &str,
    ) {
        self.size(
            schema,
            ("minItems", schema.min_items),
            ("maxItems", schema.max_items),
            items.len(),
            value,
            at,
            section,
        );
        let Some(each) = &schema.items else { return };
        for (index, item) in items.iter().enumerate() {
            if self.is_over() {
                return;
            }
            self.value(each, item, ValuePosition::Item(&at, index), section);
        }
    }

    fn object(
        &mut self,
        schema: &Schema,
        members: &Map<String, Value>,
        value: &Value,
        at: ValuePosition<'_>,
        section: &str,
    ) {
        self.size(
            schema,
            ("minProperties", schema.min_properties),
            ("maxProperties", schema.max_properties),
            members.len(),
            value,
            at,
            section,
        );
        for name in schema.required.iter().filter(|name| !members.contains_key(name.as_str())) {
            self.lack(schema, "required", Some(name), at, section, || format!("{name} is missing"));
        }
        let mut unknown = Vec::new();
        for (name, member) in members {
            if self.is_over() {
                return;
            }
            let at = ValuePosition::Member(&at, name);
            match (schema.properties.get(name), &schema.additional_properties) {
                (Some(property), _) => self.value(property, member, at, section),
                (None, Some(Additional::Each(each))) => self.value(each, member, at, section),
                (None, Some(Additional::Any(false))) => unknown.push(name),
                (None, None | Some(Additional::Any(true))) => {}
            }
        }
        if let Some(first) = unknown.first() {
            self.find(schema, "additionalProperties", at, section, || match unknown.len() - 1 {
                0 => format!("{} is not a known member", brief(first)),
                others => format!("{} and {others} more are not known members", brief(first)),
            });
        }
    }

    fn combinations(&mut self, schema: &Schema, value: &Value, at: ValuePosition<'_>, section: &str) {
        for part in &schema.all_of {
            self.value(part, value, at, section);
        }
        if !schema.any_of.is_empty() && !schema.any_of.iter().any(|form| self.accepts(form, value)) {
            let required = required_by(&schema.any_of);
            self.lack(schema, "anyOf", required.first().copied(), at, section, || none_of(&required, at));
        }
        if !schema.one_of.is_empty() {
            self.one_of(schema, value, at, section);
        }
        if let Some(not) = &schema.not
            && self.accepts(not, value)
        {
            self.find(schema, "not", at, section, || match not.required.as_slice() {
                // Only the mapping of protocol buffers forbids two members together.
                [one, other] => {
                    format!("{one} and {other} are two spellings of one member: set only one")
                }
                _ => format!("{} has a form that is not allowed", at.name()),
            });
        }
        if let Some(condition) = &schema.condition {
            let holds = self.accepts(condition, value);
            if let Some(then) = if holds { &schema.consequence } else { &schema.alternative } {
                let outer = self.words.clone();
                if then.description.is_some() {
                    self.words.clone_from(&then.description);
                }
                self.value(then, value, at, section);
                self.words = outer;
            }
        }
    }

    /// Reports the violations of the alternative that the value is closest to.
    fn one_of(&mut self, schema: &Schema, value: &Value, at: ValuePosition<'_>, section: &str) {
        let matching: Vec<&Schema> = schema.one_of.iter().filter(|form| may_match(form, value)).collect();
        match matching.as_slice() {
            [] => {
                self.find(schema, "oneOf", at, section, || {
                    let wanted = schema.one_of.iter().flat_map(|form| &REQUESTS.follow(form).types);
                    let mut known = Vec::new();
                    for kind in wanted {
                        if !known.contains(kind) {
                            known.push(*kind);
                        }
                    }
                    if known.iter().any(|kind| kind.admits(value)) {
                        format!("{} matches none of the allowed forms", at.name())
                    } else {
                        format!("{} is {}, not {}", at.name(), type_of(value), types(&known))
                    }
                });
            }
            [only] => self.value(only, value, at, section),
            several => match with_first_item(several, value).as_slice() {
                // For lists of different items, the first item selects the alternative.
                [only] => self.value(only, value, at, section),
                _ if several.iter().filter(|form| self.accepts(form, value)).count() != 1 => {
                    self.find(schema, "oneOf", at, section, || {
                        format!("{} matches none of the allowed forms", at.name())
                    });
                }
                _ => {}
            },
        }
    }
}

/// Whether a value may match a form, judged by its type and by the constants that distinguish the forms.
fn may_match(form: &Schema, value: &Value) -> bool {
    let form = REQUESTS.follow(form);
    let contradicts = |(name, property): (&String, &Schema)| {
        let (Some(constant), Some(given)) = (&property.constant, value.get(name)) else { return false };
        !is_same(constant, given)
    };
    (form.types.is_empty() || form.types.iter().any(|kind| kind.admits(value)))
        && !form.properties.iter().any(contradicts)
}

/// The forms that admit the type of the first item of a list.
fn with_first_item<'s>(forms: &[&'s Schema], value: &Value) -> Vec<&'s Schema> {
    let Some(first) = value.as_array().and_then(|items| items.first()) else { return Vec::new() };
    let admits = |items: &Schema| {
        let types = &REQUESTS.follow(items).types;
        types.is_empty() || types.iter().any(|kind| kind.admits(first))
    };
    let matching = forms.iter().filter(|form| REQUESTS.follow(form).items.as_deref().is_none_or(admits));
    matching.copied().collect()
}

/// The members that one of the forms requires.
fn required_by(forms: &[Schema]) -> Vec<&str> {
    forms.iter().flat_map(|form| &form.required).map(String::as_str).collect()
}

/// The message for a value that matches none of the forms: it lacks a member that one of them requires.
fn none_of(required: &[&str], at: ValuePosition<'_>) -> String {
    if required.is_empty() {
        format!("{} matches none of the allowed forms", at.name())
    } else {
        format!("{} is missing", required.join(" or "))
    }
}

/// Whether two values are equal in the sense of JSON Schema: `1` equals `1.0`.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn visits(operation: &str, body: &Value) -> (usize, usize) {
        let mut walk = Walk::new(MAX_VIOLATIONS);
        walk.value(REQUESTS.body(operation).expect("a schema"), body, ValuePosition::Root, "ours");
        (walk.visited, walk.found.len())
    }

    #[test]
    fn walk_stops_at_maximum_violations() {
        let wrong = |elements| json!({ "model": "model-sol", "messages": vec![0; elements] });
        assert_eq!(
            visits("create_chat_completion", &wrong(200)),
            visits("create_chat_completion", &wrong(20_000))
        );
        let wrong =
            |elements| json!({ "model": "model-sol", "input": vec![json!({ "type": "message" }); elements] });
        let (few, found) = visits("create_response", &wrong(200));
        assert_eq!((few, found), visits("create_response", &wrong(20_000)));
        assert!(found == 100 && few < 100 * 30, "{few} visits");
    }

    #[test]
    fn visits_grow_linearly_with_elements() {
        let part = json!({ "type": "text", "text": "hi" });
        let message = json!({ "role": "user", "content": [part, part] });
        let right = |elements| json!({ "model": "model-sol", "messages": vec![message.clone(); elements] });
        let of = |elements| visits("create_chat_completion", &right(elements));
        let ((one, none), (two, _), (three, _)) = (of(1_000), of(2_000), of(3_000));
        assert_eq!((none, three - two), (0, two - one));
    }

    #[test]
    fn overlong_pointer_ends_at_a_container() {
        let name = "n".repeat(MAX_POINTER_BYTES);
        let (root, long) = (ValuePosition::Root, "a/b~c".to_owned());
        let metadata = ValuePosition::Member(&root, &long);
        assert_eq!(metadata.pointer(), "/a~1b~0c");
        assert_eq!(ValuePosition::Member(&metadata, &name).pointer(), "/a~1b~0c");
        assert_eq!(ValuePosition::Item(&metadata, 7).pointer(), "/a~1b~0c/7");
        assert_eq!(ValuePosition::Item(&ValuePosition::Member(&metadata, &name), 7).pointer(), "/a~1b~0c");
    }
}
