//! Every member of the report with its rules, as the schema states them.

use serde_json::Value;

use crate::load::{child, text};
use crate::model::{Member, ReportCondition};

/// Keywords that are documented for a member.
const RULES: &[&str] = &[
    "type",
    "const",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "uniqueItems",
    "pattern",
    "format",
];

/// The members of a schema and of the schemas in it, in order.
pub(super) fn members(schema: &Value) -> Vec<Member> {
    let mut found = Vec::new();
    collect(&mut found, schema, schema, "");
    found
}

fn collect(found: &mut Vec<Member>, root: &Value, node: &Value, at: &str) {
    let node = resolved(root, node);
    let required: Vec<&str> =
        node["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, inner) in node["properties"].as_object().into_iter().flatten() {
        let at = child(at, name);
        let target = resolved(root, inner);
        let mut rules = rules(target);
        if required.contains(&name.as_str()) {
            rules.push("required".to_owned());
        }
        let meaning = match text(inner, "description") {
            "" => text(target, "description"),
            own => own,
        };
        found.push(Member { pointer: at.clone(), rules, meaning: meaning.to_owned() });
        collect(found, root, target, &at);
        if let Some(items) = target.get("items") {
            let at = format!("{at}/*");
            let items = resolved(root, items);
            let meaning = text(items, "description").to_owned();
            found.push(Member { pointer: at.clone(), rules: self::rules(items), meaning });
            collect(found, root, items, &at);
        }
        // An object that may be null.
        for form in target["oneOf"].as_array().or(target["anyOf"].as_array()).into_iter().flatten() {
            collect(found, root, form, &at);
        }
    }
}

fn rules(schema: &Value) -> Vec<String> {
    let keywords = schema.as_object().into_iter().flatten();
    let rules = keywords.filter(|(keyword, _)| RULES.contains(&keyword.as_str()));
    rules.map(|(keyword, value)| format!("{keyword} `{value}`")).collect()
}

/// The rules of a schema, and of the schemas in it, that involve several members, by title.
pub(super) fn conditions(schema: &Value) -> Vec<ReportCondition> {
    let mut found = Vec::new();
    collect_conditions(&mut found, schema, schema, "");
    found
}

fn collect_conditions(found: &mut Vec<ReportCondition>, root: &Value, node: &Value, at: &str) {
    let node = resolved(root, node);
    let titles = node["allOf"].as_array().into_iter().flatten().map(|rule| text(rule, "title"));
    found.extend(titles.map(|title| ReportCondition { pointer: at.to_owned(), rule: title.to_owned() }));
    for (name, inner) in node["properties"].as_object().into_iter().flatten() {
        collect_conditions(found, root, inner, &child(at, name));
    }
    if let Some(items) = node.get("items") {
        collect_conditions(found, root, items, &format!("{at}/*"));
    }
}

fn resolved<'a>(root: &'a Value, node: &'a Value) -> &'a Value {
    match node.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#')) {
        Some(pointer) => root.pointer(pointer).unwrap_or(node),
        None => node,
    }
}
