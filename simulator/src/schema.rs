//! Generates values that match a JSON Schema from the tokens, quoted strings, names and numbers of a question.
//!
//! Supports the keywords that tool and answer schemas use: types, `properties`, `required`, `items`, `prefixItems`,
//! `enum`, `const`, local `$ref`, `allOf`, `anyOf`, `oneOf`, bounds, `pattern` and `format`. Strings and numbers are
//! candidates tried against their own schema, best first, so that they also satisfy `not`, `if` and the like.

mod judge;
mod layers;
mod pattern;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use self::judge::Judge;
use self::layers::Layers;
use self::pattern::{LENGTH, Pattern};
use super::question::Question;
use crate::budget::{Budget, BudgetExceeded};
use crate::client_schema::ClientSchema;

/// Below this depth, only required properties are set, so that recursive schemas end.
const FULL_DEPTH: usize = 5;
/// Below this depth, no properties are set.
const DEPTH: usize = 24;
/// Maximum number of items of an array, whatever `minItems` says.
const ITEMS: usize = 64;
/// Maximum length of a text of the question to match against a pattern or format, in bytes.
const TRIED: usize = 1_024;

/// Steps to inspect a value of a schema.
const LOOK: usize = 64;
/// Memory of a value besides its text, in bytes.
const VALUE: usize = 128;

/// A value that matches the schema. If no value matches, or the schema uses unsupported keywords, the value is a near
/// miss.
pub(crate) fn fit(
    schema: &ClientSchema,
    question: &Question<'_>,
    budget: &Budget,
) -> Result<Value, BudgetExceeded> {
    let fitting = Fitting { root: schema.value(), question, budget };
    fitting.value(&[schema.value()], ValuePosition::property("value", 0), 0)
}

/// The place of a value.
#[derive(Clone, Copy)]
struct ValuePosition<'a> {
    /// Name of the property.
    name: &'a str,
    /// Number of strings generated for the object before this one: each takes another hint.
    property: usize,
    /// Index in an array: each value differs.
    copy: usize,
}

impl<'a> ValuePosition<'a> {
    fn property(name: &'a str, property: usize) -> Self {
        Self { name, property, copy: 0 }
    }
}

struct Fitting<'a> {
    root: &'a Value,
    question: &'a Question<'a>,
    budget: &'a Budget,
}

impl<'a> Fitting<'a> {
    /// A value that matches all of these schemas.
    fn value(
        &self,
        schemas: &[&'a Value],
        place: ValuePosition<'_>,
        depth: usize,
    ) -> Result<Value, BudgetExceeded> {
        self.budget.make(VALUE)?;
        if depth > DEPTH {
            return Ok(Value::Null);
        }
        let layers = self.layers(schemas)?;
        let depth = depth + usize::from(layers.referred);
        if let Some(fixed) = layers.first("const") {
            return self.copied(fixed);
        }
        if layers.has("enum") {
            return self.one_of(layers.list("enum"), place.copy);
        }
        match layers.kind() {
            "object" => self.object(&layers, depth),
            "array" => self.array(&layers, place, depth),
            "integer" | "number" => self.number(&layers, place),
            "boolean" => Ok(Value::Bool(true)),
            "null" => Ok(Value::Null),
            _ => self.string(&layers, place),
        }
    }

    fn layers(&self, schemas: &[&'a Value]) -> Result<Layers<'a>, BudgetExceeded> {
        let mut layers = Layers { keywords: Vec::new(), referred: false };
        let mut waiting: Vec<&'a Value> = schemas.to_vec();
        let mut next = 0;
        while let Some(schema) = waiting.get(next) {
            next += 1;
            self.budget.work(LOOK + layers.keywords.len())?;
            let Value::Object(keywords) = schema else { continue };
            // A cycle of references.
            if layers.keywords.iter().any(|known| std::ptr::eq(*known, keywords)) {
                continue;
            }
            layers.keywords.push(keywords);
            if let Some(target) = keywords.get("$ref").and_then(Value::as_str) {
                self.budget.work(target.len())?;
                layers.referred = true;
                waiting.extend(target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)));
            }
            if let Some(parts) = keywords.get("allOf").and_then(Value::as_array) {
                self.budget.work(parts.len())?;
                waiting.extend(parts);
            }
            for union in ["anyOf", "oneOf"] {
                if let Some(variants) = keywords.get(union).and_then(Value::as_array) {
                    self.budget.work(variants.len())?;
                    let null = |variant: &&Value| variant.get("type").is_some_and(|kind| kind == "null");
                    waiting.extend(variants.iter().find(|variant| !null(variant)).or(variants.first()));
                }
            }
        }
        Ok(layers)
    }

    /// A value copied from the schema itself.
    fn copied(&self, value: &Value) -> Result<Value, BudgetExceeded> {
        self.charge_copy(value)?;
        Ok(value.clone())
    }

    fn charge_copy(&self, value: &Value) -> Result<(), BudgetExceeded> {
        match value {
            Value::String(text) => self.budget.make(VALUE + text.len()),
            Value::Array(values) => {
                self.budget.make(VALUE)?;
                values.iter().try_for_each(|value| self.charge_copy(value))
            }
            Value::Object(members) => {
                self.budget.make(VALUE)?;
                members.iter().try_for_each(|(name, value)| {
                    self.budget.make(VALUE + name.len())?;
                    self.charge_copy(value)
                })
            }
            _ => self.budget.make(VALUE),
        }
    }

    /// One of the allowed values: first those that the question mentions, then the others in order.
    fn one_of(&self, allowed: &[Value], copy: usize) -> Result<Value, BudgetExceeded> {
        let mut ordered: Vec<&Value> = Vec::new();
        let mut others: Vec<&Value> = Vec::new();
        for value in allowed {
            self.budget.work(LOOK)?;
            let mentioned = match value {
                Value::String(text) => self.question.mentions(text, self.budget)?,
                _ => false,
            };
            if mentioned { &mut ordered } else { &mut others }.push(value);
        }
        ordered.extend(others);
        ordered.get(copy % ordered.len().max(1)).map_or(Ok(Value::Null), |value| self.copied(value))
    }

    fn object(&self, layers: &Layers<'a>, depth: usize) -> Result<Value, BudgetExceeded> {
        let mut names: Vec<&'a str> = Vec::new();
        let mut properties: HashMap<&'a str, Vec<&'a Value>> = HashMap::new();
        for (name, schema) in layers.all("properties").filter_map(Value::as_object).flatten() {
            self.budget.work(LOOK + name.len())?;
            let schemas = properties.entry(name).or_default();
            if schemas.is_empty() {
                names.push(name);
            }
            schemas.push(schema);
        }
        let mut required: HashSet<&'a str> = HashSet::new();
        let mut further: Vec<&'a str> = Vec::new();
        for name in layers.all("required").filter_map(Value::as_array).flatten().filter_map(Value::as_str) {
            self.budget.work(LOOK + name.len())?;
            if required.insert(name) && !properties.contains_key(name) {
                further.push(name);
            }
        }
        let mut object = Map::new();
        let mut strings = 0;
        for name in names {
            if depth < FULL_DEPTH || required.contains(name) {
                let schemas = &properties[name];
                self.budget.make(name.len())?;
                let value = self.value(schemas, ValuePosition::property(name, strings), depth + 1)?;
                let free = schemas.iter().all(|schema| schema.get("enum").is_none());
                strings += usize::from(value.is_string() && free);
                object.insert(name.to_owned(), value);
            }
        }
        let other: Vec<&'a Value> = layers.all("additionalProperties").collect();
        for name in further {
            self.budget.make(name.len())?;
            let value = self.value(&other, ValuePosition::property(name, strings), depth + 1)?;
            object.insert(name.to_owned(), value);
        }
        Ok(Value::Object(object))
    }

    fn array(
        &self,
        layers: &Layers<'a>,
        place: ValuePosition<'_>,
        depth: usize,
    ) -> Result<Value, BudgetExceeded> {
        let fixed = layers.list("prefixItems");
        let items: Vec<&'a Value> = layers.all("items").collect();
        let length = if items.contains(&&Value::Bool(false)) {
            fixed.len()
        } else {
            // At the depth that omits optional properties, optional items are omitted, too.
            let wanted = if depth < FULL_DEPTH { fixed.len().max(1) } else { 0 };
            wanted.max(layers.least_count("minItems")).min(layers.most_count("maxItems")).min(ITEMS)
        };
        let item = |index: usize| match fixed.get(index) {
            Some(schema) => self.value(&[schema], place, depth + 1),
            None => self.value(&items, ValuePosition { copy: index, ..place }, depth + 1),
        };
        (0..length).map(item).collect()
    }

    fn number(&self, layers: &Layers<'a>, place: ValuePosition<'_>) -> Result<Value, BudgetExceeded> {
        let low = layers.least("minimum").or(layers.least("exclusiveMinimum").map(|low| low + 1.0));
        let high = layers.most("maximum").or(layers.most("exclusiveMaximum").map(|high| high - 1.0));
        let step = layers.least("multipleOf").unwrap_or(1.0);
        let mut candidates: Vec<Value> =
            self.question.hints().numbers.iter().skip(place.copy).cloned().map(Value::Number).collect();
        candidates.extend(layers.first("default").filter(|default| default.is_number()).cloned());
        let copy = f64::from(u32::try_from(place.copy).unwrap_or(0));
        let from = low.map_or(0.0, |low| (low / step).ceil() * step);
        let middle = low.zip(high).map_or(from, |(low, high)| f64::midpoint(low, high));
        for number in
            [from + (copy + 1.0) * step, from + copy * step, from, middle, high.unwrap_or(from), -step]
        {
            candidates.push(whole(number).map_or_else(|| json!(number), |whole| json!(whole)));
        }
        Judge::of(layers, None, self.budget)?.first_fitting(candidates.into_iter(), self.budget)
    }

    fn string(&self, layers: &Layers<'a>, place: ValuePosition<'_>) -> Result<Value, BudgetExceeded> {
        let source = layers.text("pattern");
        let pattern = source.map(|source| Pattern::read(source, self.budget)).transpose()?;
        let judge = Judge::of(layers, source.zip(pattern.as_ref()), self.budget)?;
        let hints = self.question.hints();
        let mut candidates: Vec<Cow<'_, str>> = Vec::new();
        if place.copy == 0 {
            // Every property gets the requested token; the other hints are taken in turn.
            candidates.extend(hints.token.as_deref().map(Cow::from));
            let turn = place.property % hints.strings.len().max(1);
            let (before, from) = hints.strings.split_at(turn);
            candidates.extend(from.iter().chain(before).map(Cow::from));
            candidates.extend(layers.text("default").map(Cow::from));
        } else {
            candidates.extend(hints.strings.iter().skip(place.copy).map(Cow::from));
        }
        candidates
            .extend(layers.list("examples").iter().take(ITEMS).filter_map(Value::as_str).map(Cow::from));
        // The cost of validating these grows with the text, and a client's text may be long or itself a regular
        // expression.
        let format = layers.text("format");
        if pattern.is_some() || format.is_some() {
            candidates.retain(|candidate| candidate.len() <= TRIED && format != Some("regex"));
        }
        candidates.extend(format.and_then(example).map(Cow::from));

        let (shortest, longest) =
            (layers.least_count("minLength").min(LENGTH), layers.most_count("maxLength").min(LENGTH));
        let plain = if place.copy == 0 {
            place.name.to_owned()
        } else {
            format!("{} {}", place.copy + 1, place.name)
        };
        let length = plain.chars().count().max(shortest).min(longest);
        self.budget.work(4 * length)?;
        candidates.push(plain.chars().cycle().take(length).collect());
        if let Some(pattern) = &pattern {
            candidates.extend(pattern.example(shortest, self.budget)?.map(Cow::from));
        }
        judge.first_fitting(candidates.into_iter().map(|text| Value::String(text.into_owned())), self.budget)
    }
}

fn whole(number: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and far inside the range")]
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}

/// An example of a JSON Schema format.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn made(schema: &Value, question: &str) -> Value {
        let budget = Budget::new();
        let question = Question::read(question, &budget).expect("within the budget");
        let schema = ClientSchema::read(schema, "").expect("within the bounds");
        fit(&schema, &question, &budget).expect("within the budget")
    }

    #[test]
    fn generated_values_satisfy_their_schemas() {
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
                let value = made(&schema, prompt);
                let validator =
                    jsonschema::options().should_validate_formats(true).build(&schema).expect("schema");
                let errors: Vec<String> =
                    validator.iter_errors(&value).map(|error| error.to_string()).collect();
                assert!(errors.is_empty(), "{schema}\n{value}\n{errors:?}");
            }
        }
    }

    #[test]
    fn requested_token_fills_the_strings() {
        let schema = json!({"type": "object", "properties": {"value": {"type": "string"}, "unit": {"enum": ["a", "b"]},
            "other": {"type": "string"}}});
        assert_eq!(
            made(&schema, "Call it with the value COMPAT-12ab34 and unit b."),
            json!({"value": "COMPAT-12ab34", "unit": "b", "other": "COMPAT-12ab34"})
        );
    }

    #[test]
    fn names_in_the_prompt_become_arguments() {
        let schema = json!({"properties": {"city": {"type": "string"}}});
        assert_eq!(made(&schema, "What is the weather in Paris?"), json!({"city": "Paris"}));
    }

    /// Steps and bytes spent until a value is found or the budget is exhausted.
    fn spent(
        schema: &Value,
        question: &str,
        limits: (usize, usize),
    ) -> (usize, usize, Result<(), BudgetExceeded>) {
        let budget = Budget::of(limits.0, limits.1);
        let schema = ClientSchema::read(schema, "").expect("within the bounds");
        let fitted = Question::read(question, &budget).and_then(|question| fit(&schema, &question, &budget));
        (budget.worked(), budget.made(), fitted.map(drop))
    }

    #[test]
    fn endless_schemas_stop_at_the_budget() {
        const STEPS: usize = 2_000_000;
        let names: Vec<String> = (0..8).map(|number| format!("p{number}")).collect();
        let itself: Map<String, Value> =
            names.iter().map(|name| (name.clone(), json!({ "$ref": "#" }))).collect();
        let nested = |item: Value| {
            (0..6).fold(item, |inner, _| json!({ "type": "array", "minItems": 64, "items": inner }))
        };
        let doubling: Map<String, Value> = (0..60)
            .map(|number| {
                let next = json!({ "$ref": format!("#/$defs/d{}", number + 1) });
                (
                    format!("d{number}"),
                    json!({ "properties": { "a": next, "b": next }, "required": ["a", "b"] }),
                )
            })
            .collect();
        for schema in [
            json!({ "properties": itself, "required": names }),
            nested(json!({ "type": "string" })),
            nested(json!({ "const": "x".repeat(1_000) })),
            nested(json!({ "enum": ["a", "b"] })),
            nested(json!({ "type": "string", "pattern": r"(?i)[\pL\pN]{2,9}" })),
            json!({ "$defs": doubling, "$ref": "#/$defs/d0" }),
        ] {
            let (steps, bytes, fitted) = spent(&schema, "Say 'a' or B", (STEPS, STEPS));
            assert!(steps <= STEPS && bytes <= STEPS, "{schema}");
            assert!(
                matches!(fitted, Err(BudgetExceeded::Steps(STEPS) | BudgetExceeded::Bytes(STEPS))),
                "{schema}: {fitted:?}"
            );
        }
    }

    #[test]
    fn schemas_that_only_look_costly_are_answered() {
        let circle = json!({ "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } }, "$ref": "#/$defs/a" });
        let pattern = json!({ "type": "string", "pattern": "^(((a{999}){999}){999})$" });
        let negated = json!({ "type": "string", "not": { "not": { "type": "string" } } });
        let properties: Map<String, Value> =
            (0..2_000).map(|number| (format!("p{number}"), json!({ "type": "string" }))).collect();
        let names: Vec<&String> = properties.keys().collect();
        let large = json!({ "type": "object", "required": names, "properties": properties });
        for schema in [circle, pattern, negated, large] {
            let (_, _, fitted) = spent(&schema, "Say hi", (crate::budget::STEPS, crate::budget::BYTES));
            assert_eq!(fitted, Ok(()), "{schema}");
        }
    }

    #[test]
    fn many_enum_values_do_not_rescan_the_question() {
        let allowed: Vec<String> = (0..1_000).map(|number| format!("value {number}")).collect();
        let question = "some word ".repeat(20_000);
        let alone = spent(&json!({ "const": 1 }), &question, (usize::MAX, usize::MAX)).0;
        let (steps, _, fitted) = spent(&json!({ "enum": allowed }), &question, (usize::MAX, usize::MAX));
        assert_eq!(fitted, Ok(()));
        assert!(steps - alone < 2_000_000, "{} steps", steps - alone);
    }

    #[test]
    fn worst_schemas_stay_within_the_budget() {
        const LIMITS: (usize, usize) = (5_000_000, 1_600_000);
        let vectors = include_str!("../../tests/vectors/simulator/schemas.json");
        let vectors: Value = serde_json::from_str(vectors).expect("JSON");
        let cases = vectors["cases"].as_array().expect("cases");
        assert!(cases.len() > 10);
        for case in cases {
            let question = case["question"].as_str().expect("a question");
            let (steps, bytes, fitted) = spent(&case["schema"], question, LIMITS);
            assert!(steps <= LIMITS.0 && bytes <= LIMITS.1, "{}", case["name"]);
            assert_eq!(
                Some(fitted.is_ok()),
                case["answered"].as_bool(),
                "{}: {steps} steps, {bytes} bytes",
                case["name"]
            );
        }
    }
}
