//! Documents generated from the specification's schemas: one for each value of each field, and one without it.

use serde_json::{Map, Value, json};

/// The specification as written by the generator.
const SPECIFICATION: &str = include_str!("../../../spec/generated/openapi-3.2.json");
/// Depth from which schemas repeat: a part of a call's result in a message.
const DEEPEST: usize = 5;

/// A document with a value, and the same without it.
pub(super) struct Probe {
    /// The value's place.
    pub(super) at: String,
    pub(super) with: Value,
    pub(super) without: Value,
}

/// The schemas.
pub(super) struct Schemas(Value);

impl Schemas {
    pub(super) fn read() -> Self {
        let mut specification: Value = serde_json::from_str(SPECIFICATION).expect("JSON");
        Self(specification["components"]["schemas"].take())
    }

    /// A probe for each value of each field of a document. The document is the minimal valid one plus these fields.
    pub(super) fn probes(&self, name: &str, context: &Value) -> Vec<Probe> {
        let base = merged(self.least(&self.0[name], 0), context);
        let mut probes = self.members(&self.0[name], &base, 0);
        probes.retain(|probe| probe.with != probe.without);
        probes
    }

    /// The schema that a reference points to.
    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(place) => &self.0[place.rsplit('/').next().unwrap_or_default()],
            None => schema,
        }
    }

    /// The alternatives of a schema, without null and unknown kinds.
    fn forms<'a>(&'a self, schema: &'a Value) -> Vec<&'a Value> {
        let schema = self.resolved(schema);
        let Some(forms) = schema["oneOf"].as_array() else { return vec![schema] };
        let is_known = |form: &&Value| form["type"] != "null" && form["properties"]["type"]["not"].is_null();
        forms.iter().filter(is_known).flat_map(|form| self.forms(form)).collect()
    }

    /// The minimal value of a schema.
    fn least(&self, schema: &Value, depth: usize) -> Value {
        let forms = self.forms(schema);
        let Some(schema) = forms.first() else { return Value::Null };
        if let Some(members) = schema["properties"].as_object() {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let least = |name: &str| (name.to_owned(), self.least_member(name, &members[name], depth));
            return Value::Object(required.map(least).collect());
        }
        match kind(schema) {
            "array" if depth > DEEPEST => json!([]),
            "array" => json!([self.least(&schema["items"], depth + 1)]),
            "object" => json!({}),
            _ => samples("", schema).first().cloned().unwrap_or_else(|| json!("least")),
        }
    }

    fn least_member(&self, name: &str, schema: &Value, depth: usize) -> Value {
        let scalar = self.forms(schema).into_iter().find(|form| is_scalar(form));
        match scalar.map(|form| samples(name, form)) {
            Some(samples) if kind(self.forms(schema)[0]) != "array" => samples[0].clone(),
            _ => self.least(schema, depth + 1),
        }
    }

    /// Probes for the fields of an object.
    fn members(&self, schema: &Value, base: &Value, depth: usize) -> Vec<Probe> {
        let mut probes = Vec::new();
        let roles = schema["properties"]["role"]["enum"].as_array().cloned().unwrap_or_default();
        let mut bases: Vec<Value> =
            roles.into_iter().map(|role| merged(base.clone(), &json!({ "role": role }))).collect();
        if bases.is_empty() {
            bases.push(base.clone());
        }
        for base in bases {
            for (name, member) in schema["properties"].as_object().into_iter().flatten() {
                if !member["const"].is_null() || depth > DEEPEST {
                    continue;
                }
                for (at, with, without) in self.values(name, member, depth) {
                    let set = |value: Option<Value>| {
                        let mut object = base.clone();
                        match (value, &mut object) {
                            (Some(value), object) => object[name] = value,
                            // A required field is present with another value.
                            (None, Value::Object(members)) if !is_required(schema, name) => {
                                members.remove(name);
                            }
                            (None, _) => {}
                        }
                        object
                    };
                    probes.push(Probe {
                        at: format!("/{name}{at}"),
                        with: set(Some(with)),
                        without: set(without),
                    });
                }
            }
        }
        probes
    }

    /// Values of a field, each with what remains without the probed part.
    fn values(&self, name: &str, schema: &Value, depth: usize) -> Vec<(String, Value, Option<Value>)> {
        let mut values = Vec::new();
        for form in self.forms(schema) {
            match kind(form) {
                _ if form["properties"].is_object() => {
                    let least = self.least(form, depth);
                    let inner = self.members(form, &least, depth + 1);
                    values.extend(inner.into_iter().map(|probe| (probe.at, probe.with, Some(probe.without))));
                    values.push((String::new(), least, None));
                }
                "array" => {
                    for (at, with, without) in self.values(name, &form["items"], depth + 1) {
                        let without = without.map(|without| json!([without]));
                        values.push((format!("/0{at}"), json!([with]), without));
                    }
                }
                "object" => values.push((String::new(), json!({ "probe": "probed" }), None)),
                _ => {
                    let samples = samples(name, form).into_iter();
                    values.extend(samples.map(|sample| (String::new(), sample, None)));
                }
            }
        }
        values
    }
}

fn merged(mut base: Value, members: &Value) -> Value {
    for (name, value) in members.as_object().into_iter().flatten() {
        base[name] = value.clone();
    }
    base
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().into_iter().flatten().any(|required| required == name)
}

/// A schema's type other than null.
fn kind(schema: &Value) -> &str {
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        kind => kind.as_str(),
    }
    .unwrap_or_default()
}

fn is_scalar(schema: &Value) -> bool {
    schema["properties"].is_null() && !matches!(kind(schema), "array" | "object")
}

/// Values of a scalar, or of a field that may be anything. `name`: the field's.
fn samples(name: &str, schema: &Value) -> Vec<Value> {
    for words in ["enum", "x-extensible-enum"] {
        if let Some(words) = schema[words].as_array() {
            return words.iter().filter(|word| !word.is_null()).cloned().collect();
        }
    }
    if !schema["const"].is_null() {
        return vec![schema["const"].clone()];
    }
    match kind(schema) {
        "string" => {
            let sample = match name {
                "url" | "image_url" => "https://probe.example/a.png",
                "data" => "cHJvYmU=",
                "arguments" => "{\"probe\":1}",
                "mimeType" | "media_type" => "image/png",
                _ => "probe",
            };
            vec![json!("other"), json!(sample)]
        }
        "boolean" => vec![json!(true), json!(false)],
        "integer" => vec![json!(2), json!(3)],
        "number" => vec![json!(0.5)],
        _ => vec![Value::Object(Map::from_iter([("type".to_owned(), json!("object"))]))],
    }
}
