//! Every member of the report with its rules, as the schema states them.

use serde_json::Value;

use crate::load::{child, text};
use crate::model::Member;

/// Keywords that are told of a member.
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

/// The members of a schema and of what is in it, in its order.
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
        let keywords = target.as_object().into_iter().flatten();
        let mut rules: Vec<String> = keywords
            .filter(|(keyword, _)| RULES.contains(&keyword.as_str()))
            .map(|(keyword, value)| format!("{keyword} `{value}`"))
            .collect();
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
            collect(found, root, items, &format!("{at}/*"));
        }
        // An object that may be null.
        for form in target["oneOf"].as_array().or(target["anyOf"].as_array()).into_iter().flatten() {
            collect(found, root, form, &at);
        }
    }
}

fn resolved<'a>(root: &'a Value, node: &'a Value) -> &'a Value {
    match node.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#')) {
        Some(pointer) => root.pointer(pointer).unwrap_or(node),
        None => node,
    }
}
