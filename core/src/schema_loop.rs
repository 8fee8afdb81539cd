//! Closes the loop of the generator: compares the JSON Schemas that schemars derives from the generated types with
//! those of the specification. Anything that a type does not express must be recorded in
//! `spec/generated/dropped-keywords.json`, and anything recorded as enforced by `limits` must be in the schemas that
//! `limits` enforces.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

const SPECIFICATION: &str = include_str!("../../spec/generated/openapi-3.2.json");
const DROPPED: &str = include_str!("../../spec/generated/dropped-keywords.json");
const REQUESTS: &str = include_str!("api/generated/requests.schema.json");

/// Keywords that do not affect which documents are valid, or that describe alternative spellings.
const ANNOTATIONS: &[&str] = &[
    "description",
    "title",
    "examples",
    "deprecated",
    "x-accepts-type",
    "x-added",
    "x-assumed-kind",
    "x-brackets",
    "x-built",
    "x-iterable",
    "x-json-mapping",
    "x-new",
    "x-open-union",
    "x-ours",
    "x-pattern-words",
    "x-position",
    "x-source",
    "x-text",
];

#[test]
fn constraints_missing_from_types_are_recorded_as_dropped() {
    let comparison = Comparison::new(parse(SPECIFICATION));
    let missing = comparison.run();
    assert!(missing.is_empty(), "lost by the types and recorded nowhere:\n{}", missing.join("\n"));
}

#[test]
fn unrecorded_dropped_constraint_is_detected() {
    let mut specification = parse(SPECIFICATION);
    let model = &mut specification["components"]["schemas"]["ChatCompletionRequest"]["properties"]["user"];
    model["maxLength"] = 64.into();
    let missing = Comparison::new(specification).run();
    assert_eq!(missing, ["/components/schemas/ChatCompletionRequest/properties/user: maxLength"]);
}

#[test]
fn newly_required_property_is_detected_as_optional_in_the_type() {
    let mut specification = parse(SPECIFICATION);
    let required = specification["components"]["schemas"]["VideoTask"]["required"].as_array_mut();
    required.expect("a list").push("estimated_time".into());
    let missing = Comparison::new(specification).run();
    assert_eq!(missing, ["/components/schemas/VideoTask: required (estimated_time)"]);
}

#[test]
fn constraints_recorded_as_enforced_by_limits_are_enforced() {
    let requests = parse(REQUESTS);
    let mut lost = Vec::new();
    for record in records() {
        if record["enforced_by"] != "limits" {
            continue;
        }
        let (pointer, keyword) = (string(&record["pointer"]), string(&record["keyword"]));
        let Some(place) = pointer.strip_prefix("/components/schemas") else {
            // A parameter: its schema is stored under its operation.
            let name = pointer.split('/').rev().nth(1).expect("…/parameters/{name}/schema");
            let operations = requests["operations"].as_object().expect("operations");
            let enforced =
                operations.values().any(|one| one["parameters"][name].get(keyword) == Some(&record["value"]));
            if !enforced {
                lost.push(format!("{pointer}: {keyword}"));
            }
            continue;
        };
        let node = requests.pointer(&format!("/$defs{place}"));
        let is_enforced = node.is_some_and(|node| match keyword {
            // Conditions replace the variants of an open union.
            "oneOf" | "x-discriminator" => node.get("allOf").is_some(),
            // Recorded at the property, but stated by the enclosing object.
            "required" => place.rsplit_once("/properties/").is_some_and(|(object, name)| {
                let names = requests.pointer(&format!("/$defs{object}/required")).and_then(Value::as_array);
                names.is_some_and(|names| names.iter().any(|one| one == name))
            }),
            _ => node.get(keyword) == Some(&record["value"]),
        });
        if !is_enforced {
            lost.push(format!("{pointer}: {keyword}"));
        }
    }
    assert!(lost.is_empty(), "recorded as enforced by limits, but not enforced:\n{}", lost.join("\n"));
}

#[test]
fn required_nullable_member_may_not_be_missing() {
    // schemars cannot distinguish a required Option from an optional one; serde can.
    let body = r#"{"message": "m", "type": "t", "param": null}"#;
    assert!(serde_json::from_str::<crate::api::types::StandardError>(body).is_err());
    let body = r#"{"message": "m", "type": "t", "param": null, "code": null}"#;
    assert!(serde_json::from_str::<crate::api::types::StandardError>(body).is_ok());
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("a generated file is JSON")
}

fn records() -> Vec<Value> {
    parse(DROPPED)["dropped"].as_array().expect("a list").clone()
}

fn string(value: &Value) -> &str {
    value.as_str().expect("a string")
}

struct Comparison {
    specification: Value,
    types: HashMap<String, Value>,
    recorded: BTreeSet<(String, String)>,
}

impl Comparison {
    fn new(specification: Value) -> Self {
        let schemas = crate::api::types::schemas().into_iter();
        let types =
            schemas.map(|(name, schema)| (name, serde_json::to_value(schema).expect("a schema is JSON")));
        let pair =
            |record: &Value| (string(&record["pointer"]).to_owned(), string(&record["keyword"]).to_owned());
        Self { specification, types: types.collect(), recorded: records().iter().map(pair).collect() }
    }

    fn run(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for (name, node) in self.specification["components"]["schemas"].as_object().expect("schemas") {
            let at = format!("/components/schemas/{name}");
            match self.types.get(name) {
                None => missing.push(format!("{at}: there is no such type")),
                Some(of_type) => self.compare(node, of_type, &at, &mut missing),
            }
        }
        missing
    }

    fn lost(&self, at: &str, keyword: &str, detail: &str, missing: &mut Vec<String>) {
        if !self.recorded.contains(&(at.to_owned(), keyword.to_owned())) {
            missing.push(format!("{at}: {keyword}{detail}"));
        }
    }

    /// Reports the keywords that `node` of the specification states and `of_type` does not, unless they are recorded.
    fn compare(&self, node: &Value, of_type: &Value, at: &str, missing: &mut Vec<String>) {
        if let Some(reference) = node.get("$ref") {
            if string(reference).rsplit('/').next() != referred(without_null(of_type)) {
                self.lost(at, "$ref", "", missing);
            }
            return;
        }
        let (field, of_type) = (of_type, self.resolved(of_type));
        for (keyword, value) in node.as_object().into_iter().flatten() {
            let at_keyword = format!("{at}/{keyword}");
            match keyword.as_str() {
                known if ANNOTATIONS.contains(&known) => {}
                "properties" => {
                    for (name, inner) in value.as_object().into_iter().flatten() {
                        let at = format!("{at_keyword}/{name}");
                        match of_type["properties"].get(name) {
                            None => missing.push(format!("{at}: there is no such field")),
                            Some(field) => self.compare(inner, field, &at, missing),
                        }
                    }
                }
                "required" => {
                    for name in value.as_array().into_iter().flatten().map(string) {
                        let property = format!("{at}/properties/{name}");
                        let is_required = of_type["required"]
                            .as_array()
                            .is_some_and(|all| all.iter().any(|one| one == name));
                        let filled_in = self.recorded.contains(&(property, keyword.clone()));
                        if !is_required && !filled_in && !may_be_null(&node["properties"][name]) {
                            self.lost(at, keyword, &format!(" ({name})"), missing);
                        }
                    }
                }
                "items" => self.compare(value, &of_type["items"], &at_keyword, missing),
                "additionalProperties" if value.is_object() => {
                    self.compare(value, &of_type["additionalProperties"], &at_keyword, missing);
                }
                "oneOf" if node.get("x-open-union").is_some() => {
                    self.lost(at, keyword, "", missing);
                    self.compare_open_union(value, of_type, at, missing);
                }
                "oneOf" => self.compare_union(value, field, &at_keyword, missing),
                _ if states(of_type, keyword, value) => {}
                _ => self.lost(at, keyword, "", missing),
            }
        }
    }

    /// A oneOf is an untagged enum with a variant for each form, in order; with null it is an Option.
    fn compare_union(&self, forms: &Value, of_type: &Value, at: &str, missing: &mut Vec<String>) {
        let forms = forms.as_array().into_iter().flatten().enumerate();
        let forms: Vec<(usize, &Value)> = forms.filter(|(_, form)| form["type"] != "null").collect();
        if let [(index, only)] = forms.as_slice() {
            return self.compare(only, of_type, &format!("{at}/{index}"), missing);
        }
        let variants = self.resolved(of_type)["anyOf"].as_array().map_or(&[][..], Vec::as_slice);
        if variants.len() != forms.len() {
            return missing.push(format!("{at}: {} forms, but {} variants", forms.len(), variants.len()));
        }
        for ((index, form), variant) in forms.into_iter().zip(variants) {
            self.compare(form, variant, &format!("{at}/{index}"), missing);
        }
    }

    /// An open union is one object that has the members of every variant.
    fn compare_open_union(&self, variants: &Value, of_type: &Value, at: &str, missing: &mut Vec<String>) {
        // The last form, which has no reference, is that of unknown kinds.
        for variant in
            variants.as_array().into_iter().flatten().filter(|variant| variant.get("$ref").is_some())
        {
            let name = string(&variant["$ref"]).rsplit('/').next().unwrap_or_default();
            let variant = &self.specification["components"]["schemas"][name];
            for (member, _) in variant["properties"].as_object().into_iter().flatten() {
                if of_type["properties"].get(member).is_none() {
                    missing.push(format!("{at}: {name}'s {member} is no field of the union"));
                }
            }
        }
    }

    /// A type's schema without Option, with references resolved.
    fn resolved<'a>(&'a self, of_type: &'a Value) -> &'a Value {
        let of_type = without_null(of_type);
        match referred(of_type).and_then(|name| self.types.get(name)) {
            Some(named) => self.resolved(named),
            None => of_type,
        }
    }
}

/// The schema inside the wrapper that schemars adds for Option or for a description.
fn without_null(of_type: &Value) -> &Value {
    if let Some([only]) = of_type["allOf"].as_array().map(Vec::as_slice) {
        return without_null(only);
    }
    match of_type["anyOf"].as_array().map(Vec::as_slice) {
        Some([inner, null]) if null["type"] == "null" => without_null(inner),
        _ => of_type,
    }
}

fn referred(of_type: &Value) -> Option<&str> {
    of_type["$ref"].as_str()?.rsplit('/').next()
}

fn may_be_null(node: &Value) -> bool {
    let among_types = node["type"].as_array().is_some_and(|types| types.iter().any(|name| name == "null"));
    let among_forms =
        node["oneOf"].as_array().is_some_and(|forms| forms.iter().any(|form| form["type"] == "null"));
    among_types || among_forms
}

/// Whether a type's schema has a keyword with this value or an equivalent one.
fn states(of_type: &Value, keyword: &str, value: &Value) -> bool {
    let types = |value: &Value| -> BTreeSet<String> {
        let all = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        all.iter().filter_map(Value::as_str).filter(|name| *name != "null").map(str::to_owned).collect()
    };
    match keyword {
        "type" => types(&of_type["type"]) == types(value),
        // Null among the options corresponds to the type null.
        "enum" => {
            let options = |value: &Value| {
                value
                    .as_array()
                    .cloned()
                    .unwrap_or_default()
                    .into_iter()
                    .filter(|one| !one.is_null())
                    .collect::<Vec<_>>()
            };
            options(&of_type["enum"]) == options(value)
        }
        "const" => of_type["enum"] == Value::Array(vec![value.clone()]),
        // An open enum is any string.
        "x-extensible-enum" => types(&of_type["type"]).contains("string"),
        _ => of_type.get(keyword) == Some(value),
    }
}
