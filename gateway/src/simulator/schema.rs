//! Values that fit a JSON Schema, made from what a prompt offers: its tokens, quoted strings, names and numbers.
//!
//! Understands what tool and answer schemas use: types, `properties`, `required`, `items`, `prefixItems`, `enum`,
//! `const`, local `$ref`, `allOf`, `anyOf`, `oneOf`, bounds, `pattern` and `format`. Strings and numbers are candidates
//! tried against their own schema, best first, so that any other keyword on them is honoured too.

use std::collections::HashSet;

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Number, Value, json};

use super::echo;

/// Deeper than this only required properties are filled in, so that recursive schemas end.
const FULL_DEPTH: usize = 5;
/// Deeper than this nothing is.
const DEPTH: usize = 24;
/// Most items put into an array, whatever `minItems` says.
const ITEMS: usize = 64;
/// Longest string written for the sake of `minLength`, in characters.
const LENGTH: usize = 4_096;

/// A value that fits the schema. Schemas that nothing fits, or that use what is not understood, get a near miss.
pub(crate) fn fit(schema: &Value, prompt: &str) -> Value {
    Fitting { root: schema, hints: Hints::of(prompt) }.value(schema, Place::property("value", 0), 0)
}

/// Where a value goes.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// Name of the property.
    name: &'a str,
    /// How many strings were made for the object before: each takes another hint.
    property: usize,
    /// Index in an array: each value differs.
    copy: usize,
}

impl<'a> Place<'a> {
    fn property(name: &'a str, property: usize) -> Self {
        Self { name, property, copy: 0 }
    }
}

struct Fitting<'a> {
    root: &'a Value,
    hints: Hints,
}

/// What the prompt offers.
struct Hints {
    prompt: String,
    strings: Vec<String>,
    numbers: Vec<Number>,
}

impl Hints {
    fn of(prompt: &str) -> Self {
        let mut strings: Vec<String> =
            echo::tokens(prompt).chain(echo::quoted(prompt)).map(str::to_owned).collect();
        strings.extend(echo::requested(prompt));
        strings.extend(names(prompt));
        let mut seen = HashSet::new();
        strings.retain(|string| seen.insert(string.clone()));
        Self { prompt: prompt.to_owned(), strings, numbers: echo::numbers(prompt).collect() }
    }
}

/// Capitalised words inside sentences: `What is the weather in Paris?` offers `Paris`.
fn names(prompt: &str) -> impl Iterator<Item = String> {
    let words: Vec<&str> = prompt.split_whitespace().collect();
    let name = |index: usize| {
        let word = words[index].trim_matches(|character: char| !character.is_alphanumeric());
        let inside = index > 0 && !words[index - 1].ends_with(['.', '!', '?', ':']);
        (inside && word.len() > 1 && word.starts_with(char::is_uppercase)).then(|| word.to_owned())
    };
    (0..words.len()).filter_map(name).collect::<Vec<_>>().into_iter()
}

impl Fitting<'_> {
    fn value(&self, schema: &Value, place: Place<'_>, depth: usize) -> Value {
        let Value::Object(keywords) = schema else { return self.string(&json!({}), place) };
        if depth > DEPTH {
            return Value::Null;
        }
        if let Some(fixed) = keywords.get("const") {
            return fixed.clone();
        }
        if let Some(allowed) = keywords.get("enum").and_then(Value::as_array) {
            return self.one_of(allowed, place.copy);
        }
        if let Some(target) = keywords.get("$ref").and_then(Value::as_str) {
            let resolved = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return resolved.map_or(Value::Null, |resolved| {
                self.value(&merge(resolved, schema, "$ref"), place, depth + 1)
            });
        }
        if let Some(parts) = keywords.get("allOf").and_then(Value::as_array) {
            let own =
                parts.iter().fold(schema.clone(), |whole, part| merge(&self.resolved(part), &whole, "allOf"));
            return self.value(&own, place, depth + 1);
        }
        for union in ["anyOf", "oneOf"] {
            if let Some(variants) = keywords.get(union).and_then(Value::as_array) {
                let null = |variant: &Value| variant.get("type").is_some_and(|kind| kind == "null");
                let variant = variants.iter().find(|variant| !null(variant)).or(variants.first());
                let variant = variant.map_or(json!({}), |variant| self.resolved(variant));
                return self.value(&merge(&variant, schema, union), place, depth + 1);
            }
        }
        match kind(keywords) {
            "object" => self.object(keywords, depth),
            "array" => self.array(keywords, place, depth),
            "integer" | "number" => self.number(schema, place),
            "boolean" => Value::Bool(true),
            "null" => Value::Null,
            _ => self.string(schema, place),
        }
    }

    fn resolved(&self, schema: &Value) -> Value {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
        target.and_then(|pointer| self.root.pointer(pointer)).unwrap_or(schema).clone()
    }

    /// One of the allowed values: those that the prompt mentions come first, then the others in order.
    fn one_of(&self, allowed: &[Value], copy: usize) -> Value {
        let mentioned =
            |value: &&Value| value.as_str().is_some_and(|text| echo::mentions(&self.hints.prompt, text));
        let (mut ordered, others): (Vec<&Value>, Vec<&Value>) = allowed.iter().partition(mentioned);
        ordered.extend(others);
        ordered.get(copy % ordered.len().max(1)).map_or(Value::Null, |value| (*value).clone())
    }

    fn object(&self, keywords: &Map<String, Value>, depth: usize) -> Value {
        let nothing = Map::new();
        let properties = keywords.get("properties").and_then(Value::as_object).unwrap_or(&nothing);
        let required: Vec<&str> = keywords
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let mut object = Map::new();
        let mut strings = 0;
        for (name, schema) in properties {
            if depth < FULL_DEPTH || required.contains(&name.as_str()) {
                let value = self.value(schema, Place::property(name, strings), depth + 1);
                strings += usize::from(value.is_string() && schema.get("enum").is_none());
                object.insert(name.clone(), value);
            }
        }
        let other = keywords.get("additionalProperties").filter(|other| other.is_object()).cloned();
        for name in required {
            if !object.contains_key(name) {
                let value = self.value(
                    other.as_ref().unwrap_or(&json!({})),
                    Place::property(name, strings),
                    depth + 1,
                );
                object.insert(name.to_owned(), value);
            }
        }
        Value::Object(object)
    }

    fn array(&self, keywords: &Map<String, Value>, place: Place<'_>, depth: usize) -> Value {
        let bound = |key: &str| {
            keywords
                .get(key)
                .and_then(Value::as_u64)
                .map(|bound| usize::try_from(bound).unwrap_or(usize::MAX))
        };
        let fixed = keywords.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        // Past the depth where optional properties are left out, so are optional items.
        let wanted = if depth < FULL_DEPTH { fixed.len().max(1) } else { 0 };
        let length = wanted
            .max(bound("minItems").unwrap_or(0))
            .min(bound("maxItems").unwrap_or(usize::MAX))
            .min(ITEMS);
        let anything = json!({});
        let items = keywords.get("items").unwrap_or(&anything);
        if *items == json!(false) {
            return fixed.iter().map(|schema| self.value(schema, place, depth + 1)).collect();
        }
        (0..length)
            .map(|index| match fixed.get(index) {
                Some(schema) => self.value(schema, place, depth + 1),
                None => self.value(items, Place { copy: index, ..place }, depth + 1),
            })
            .collect()
    }

    fn number(&self, schema: &Value, place: Place<'_>) -> Value {
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let low = bound("minimum").or(bound("exclusiveMinimum").map(|low| low + 1.0));
        let high = bound("maximum").or(bound("exclusiveMaximum").map(|high| high - 1.0));
        let step = bound("multipleOf").unwrap_or(1.0);
        let mut candidates: Vec<Value> =
            self.hints.numbers.iter().skip(place.copy).cloned().map(Value::Number).collect();
        candidates.extend(schema.get("default").cloned());
        let copy = f64::from(u32::try_from(place.copy).unwrap_or(0));
        let from = low.map_or(0.0, |low| (low / step).ceil() * step);
        let middle = low.zip(high).map_or(from, |(low, high)| f64::midpoint(low, high));
        for number in
            [from + (copy + 1.0) * step, from + copy * step, from, middle, high.unwrap_or(from), -step]
        {
            candidates.push(whole(number).map_or_else(|| json!(number), |whole| json!(whole)));
        }
        first_fitting(schema, candidates)
    }

    fn string(&self, schema: &Value, place: Place<'_>) -> Value {
        let hints = &self.hints.strings;
        let mut candidates: Vec<String> = Vec::new();
        if place.copy == 0 {
            // The token asked for goes into every property; other hints are taken in turn.
            candidates.extend(hints.iter().flat_map(|hint| echo::tokens(hint)).next().map(str::to_owned));
            candidates.extend(hints.iter().cycle().skip(place.property).take(hints.len()).cloned());
            candidates.extend(schema.get("default").and_then(Value::as_str).map(str::to_owned));
        } else {
            candidates.extend(hints.iter().skip(place.copy).cloned());
        }
        let examples = schema.get("examples").and_then(Value::as_array);
        candidates.extend(examples.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
        candidates.extend(schema.get("format").and_then(Value::as_str).and_then(example).map(str::to_owned));

        let bound =
            |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok());
        let (shortest, longest) =
            (bound("minLength").unwrap_or(0).min(LENGTH), bound("maxLength").unwrap_or(LENGTH));
        let plain = if place.copy == 0 {
            place.name.to_owned()
        } else {
            format!("{} {}", place.copy + 1, place.name)
        };
        let length = plain.chars().count().max(shortest).min(longest);
        candidates.push(plain.chars().cycle().take(length).collect());
        let pattern = schema.get("pattern").and_then(Value::as_str);
        candidates.extend(pattern.and_then(|pattern| matching(pattern, shortest)));
        first_fitting(schema, candidates.into_iter().map(Value::String).collect())
    }
}

/// The first candidate its schema accepts; the last one if it accepts none or is itself malformed.
fn first_fitting(schema: &Value, mut candidates: Vec<Value>) -> Value {
    if let Ok(validator) = jsonschema::options().should_validate_formats(true).build(schema)
        && let Some(at) = candidates.iter().position(|candidate| validator.is_valid(candidate))
    {
        return candidates.swap_remove(at);
    }
    candidates.pop().unwrap_or(Value::Null)
}

fn kind(keywords: &Map<String, Value>) -> &str {
    match keywords.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            kinds.clone().find(|kind| *kind != "null").or_else(|| kinds.clone().next()).unwrap_or("string")
        }
        _ if keywords.contains_key("properties") || keywords.contains_key("required") => "object",
        _ if keywords.contains_key("items") || keywords.contains_key("prefixItems") => "array",
        _ if ["minimum", "maximum", "multipleOf"].iter().any(|key| keywords.contains_key(*key)) => "number",
        _ => "string",
    }
}

/// `schema` without the keyword `done`, together with the keywords of `part`; objects and `required` are united.
fn merge(part: &Value, schema: &Value, done: &str) -> Value {
    let mut whole = schema.as_object().cloned().unwrap_or_default();
    whole.shift_remove(done);
    for (key, value) in part.as_object().into_iter().flatten() {
        match (whole.get_mut(key), value) {
            (Some(Value::Object(own)), Value::Object(other)) => own.extend(other.clone()),
            (Some(Value::Array(own)), Value::Array(other)) if key == "required" => own.extend(other.clone()),
            (Some(_), _) => {}
            (None, _) => {
                whole.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(whole)
}

fn whole(number: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and far inside the range")]
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}

/// A value of a format of JSON Schema.
fn example(format: &str) -> Option<&'static str> {
    Some(match format {
        "date-time" => "2026-01-01T12:00:00Z",
        "date" => "2026-01-01",
        "time" => "12:00:00Z",
        "duration" => "PT1H",
        "email" | "idn-email" => "someone@example.com",
        "hostname" | "idn-hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uri" | "iri" | "uri-reference" | "iri-reference" => "https://example.com/",
        "uuid" => "123e4567-e89b-42d3-a456-426614174000",
        "json-pointer" => "/value",
        "regex" => "^.*$",
        _ => return None,
    })
}

/// A short string that matches the pattern and has at least `shortest` characters where its repetitions allow it.
fn matching(pattern: &str, shortest: usize) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let spread = |extra: u32| {
        let mut text = String::new();
        write_match(&hir, extra, &mut text);
        text
    };
    // Repetitions that may be longer are all lengthened alike until the text is long enough.
    (0..=u32::try_from(shortest.min(LENGTH)).unwrap_or(0))
        .map(spread)
        .find(|text| text.chars().count() >= shortest)
}

fn write_match(hir: &Hir, extra: u32, text: &mut String) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(Class::Unicode(class)) => {
            // A letter or digit where the class has one: the first of many classes is a control character.
            let plain = ['a', 'A', '1', '0', ' '];
            let inside = |character: &char| {
                class.ranges().iter().any(|range| (range.start()..=range.end()).contains(character))
            };
            text.extend(
                plain
                    .iter()
                    .find(|character| inside(character))
                    .copied()
                    .or_else(|| class.ranges().first().map(regex_syntax::hir::ClassUnicodeRange::start)),
            );
        }
        HirKind::Class(Class::Bytes(class)) => {
            text.extend(class.ranges().first().map(|range| char::from(range.start())));
        }
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX);
            for _ in 0..repetition.min.saturating_add(extra).min(most) {
                write_match(&repetition.sub, 0, text);
            }
        }
        HirKind::Capture(capture) => write_match(&capture.sub, extra, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write_match(part, extra, text)),
        HirKind::Alternation(options) => {
            if let Some(first) = options.first() {
                write_match(first, extra, text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_values_fit_their_schemas() {
        let schemas = [
            json!({"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"],
                   "additionalProperties": false}),
            json!({"type": "object", "properties": {
                "city": {"type": "string", "minLength": 2}, "unit": {"enum": ["celsius", "fahrenheit"]},
                "days": {"type": "integer", "minimum": 3, "maximum": 7},
                "exact": {"type": "boolean"}, "note": {"type": ["string", "null"]}},
                "required": ["city", "unit", "days", "exact", "note"], "additionalProperties": false}),
            json!({"type": "object", "properties": {"tags": {"type": "array", "minItems": 3, "uniqueItems": true,
                "items": {"type": "string"}}, "pair": {"type": "array", "prefixItems": [{"type": "integer"},
                {"type": "string"}], "items": false, "minItems": 2}}, "required": ["tags", "pair"]}),
            json!({"$defs": {"node": {"type": "object", "properties": {"name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
                "required": ["name", "children"]}}, "$ref": "#/$defs/node"}),
            json!({"type": "object", "properties": {
                "when": {"type": "string", "format": "date-time"}, "mail": {"type": "string", "format": "email"},
                "id": {"type": "string", "format": "uuid"}, "link": {"type": "string", "format": "uri"},
                "code": {"type": "string", "pattern": "^[A-Z]{3}-\\d{2,4}$"},
                "long": {"type": "string", "pattern": "^x[0-9]+$", "minLength": 12, "maxLength": 12},
                "short": {"type": "string", "maxLength": 3}},
                "required": ["when", "mail", "id", "link", "code", "long", "short"]}),
            json!({"anyOf": [{"type": "null"}, {"type": "object", "properties": {"kind": {"const": "a"},
                "n": {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}}, "required": ["kind", "n"]}]}),
            json!({"allOf": [{"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 5, "minimum": 7}},
                "required": ["a"]}, {"properties": {"b": {"type": "integer", "maximum": -3}}, "required": ["b"]}]}),
            json!({"type": "object", "required": ["free"], "additionalProperties": {"type": "integer"}}),
            json!({"type": "array", "minItems": 2, "uniqueItems": true, "items": {"enum": ["x", "y", "z"]}}),
        ];
        for schema in schemas {
            for prompt in ["", "Say COMPAT-12ab34", "Weather in Paris for 5 days, 'metric' and -2.5 or 900"] {
                let value = fit(&schema, prompt);
                let validator =
                    jsonschema::options().should_validate_formats(true).build(&schema).expect("schema");
                let errors: Vec<String> =
                    validator.iter_errors(&value).map(|error| error.to_string()).collect();
                assert!(errors.is_empty(), "{schema}\n{value}\n{errors:?}");
            }
        }
    }

    #[test]
    fn the_token_asked_for_goes_into_strings() {
        let schema = json!({"type": "object", "properties": {"value": {"type": "string"}, "unit": {"enum": ["a", "b"]},
            "other": {"type": "string"}}});
        assert_eq!(
            fit(&schema, "Call it with the value COMPAT-12ab34 and unit b."),
            json!({"value": "COMPAT-12ab34", "unit": "b", "other": "COMPAT-12ab34"})
        );
    }

    #[test]
    fn names_in_the_prompt_become_arguments() {
        let schema = json!({"properties": {"city": {"type": "string"}}});
        assert_eq!(fit(&schema, "What is the weather in Paris?"), json!({"city": "Paris"}));
    }
}
