//! Emits which members of answers have to be there together, as `if`, `then`, `else` and `anyOf` of the response
//! schemas say: what `presence::check` looks for, since the generated types do not.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Result, bail};
use serde_json::Value;

use super::header;
use crate::codegen::lint::subschemas;
use crate::codegen::load::Document;
use crate::codegen::model::{Api, File, Kind, Type};

/// A rule of one schema.
struct Rule {
    /// Member and value of the condition, if there is one.
    when: Option<(String, String)>,
    /// One of these has to be there.
    any_of: Vec<String>,
}

/// A step through an answer that leads to every item of an array.
const EACH: &str = "*";

/// `core/src/generated/presence.rs`.
pub(crate) fn emit(api: &Api, document: &Document) -> Result<Vec<File>> {
    let mut code = format!(
        "// {}\n//! Members of answers that have to be there, by operation.\n\nuse crate::presence::Presence;\n\n\
         /// All rules, in the order of the specification.\npub(crate) static PRESENCE: &[Presence] = &[\n",
        header("spec/openapi.yaml")
    );
    let mut reached = BTreeSet::new();
    for operation in &api.operations {
        let mut found = Vec::new();
        if let Some(ty) = &operation.response {
            walk(api, document, ty, &mut Vec::new(), &mut Vec::new(), &mut found)?;
        }
        for (path, name, rule) in found {
            let Rule { when, any_of } = rule;
            let section = &api.schemas[&name].source;
            reached.insert(name);
            _ = writeln!(
                code,
                "    Presence {{\n        operation: {:?},\n        path: &{path:?},\n        when: {when:?},\n        \
                 any_of: &{any_of:?},\n        section: {section:?},\n    }},",
                operation.id
            );
        }
    }
    code.push_str("];\n");
    for (name, schema) in api.schemas.iter().filter(|(_, schema)| schema.in_response && !schema.in_request) {
        let Some(node) = document.schema(name) else { continue };
        if !rules(name, node)?.is_empty() && !reached.contains(&schema.name) {
            bail!(
                "{name}: nothing would check what it requires together; only members and items of an answer are looked at"
            );
        }
        if let Some((at, _)) = within(node, "").into_iter().find(|(_, inner)| has_rules(inner)) {
            bail!(
                "{name}{at}: nothing would check what it requires together; move it into a schema of its own"
            );
        }
    }
    Ok(vec![File { path: "core/src/generated/presence.rs".to_owned(), contents: code }])
}

/// The rules of what a type refers to, with the ways there. A schema within itself is looked at once.
fn walk(
    api: &Api,
    document: &Document,
    ty: &Type,
    path: &mut Vec<String>,
    inside: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, String, Rule)>,
) -> Result<()> {
    match ty {
        Type::Nullable(inner) => walk(api, document, inner, path, inside, found)?,
        Type::Array(inner) => {
            path.push(EACH.to_owned());
            walk(api, document, inner, path, inside, found)?;
            path.pop();
        }
        Type::Ref(name) if !inside.contains(name) => {
            inside.push(name.clone());
            let schema = &api.schemas[name];
            for rule in document.schema(name).map(|node| rules(name, node)).transpose()?.into_iter().flatten()
            {
                found.push((path.clone(), name.clone(), rule));
            }
            match &schema.kind {
                Kind::Object(object) => {
                    for field in &object.fields {
                        path.push(field.name.clone());
                        walk(api, document, &field.ty, path, inside, found)?;
                        path.pop();
                    }
                }
                Kind::Alias(inner) => walk(api, document, inner, path, inside, found)?,
                Kind::Enum(_) | Kind::Union(_) => {}
            }
            inside.pop();
        }
        _ => {}
    }
    Ok(())
}

fn rules(name: &str, node: &Value) -> Result<Vec<Rule>> {
    let mut rules = Vec::new();
    if let Some(branches) = node["anyOf"].as_array() {
        let mut any_of = Vec::new();
        for branch in branches {
            let [one] = &required(branch)[..] else {
                bail!("{name}: a branch of anyOf requires one member; write one for each");
            };
            any_of.push(one.clone());
        }
        rules.push(Rule { when: None, any_of });
    }
    let mut node = node;
    while let Some(condition) = node.get("if") {
        let constant = |(member, schema): (&String, &Value)| {
            schema["const"].as_str().map(|value| (member.clone(), value.to_owned()))
        };
        let constants: Option<Vec<_>> =
            condition["properties"].as_object().into_iter().flatten().map(constant).collect();
        let Some([(member, value)]) = constants.as_deref() else {
            bail!("{name}: a condition compares one member with a constant string; write it so");
        };
        if required(condition) != [member.clone()] {
            bail!("{name}: a condition holds of an object without {member}, too; require it there");
        }
        for needed in required(&node["then"]) {
            rules.push(Rule { when: Some((member.clone(), value.clone())), any_of: vec![needed] });
        }
        node = &node["else"];
    }
    Ok(rules)
}

fn has_rules(node: &Value) -> bool {
    node.get("anyOf").is_some() || node.get("if").is_some()
}

/// The schemas inside a schema, with their places; conditions are the schema's own.
fn within<'a>(node: &'a Value, at: &str) -> Vec<(String, &'a Value)> {
    let mut found = Vec::new();
    for (place, inner) in subschemas(node, at) {
        let keyword = place[at.len()..].trim_start_matches('/').split('/').next().unwrap_or_default();
        if !["if", "then", "else", "anyOf"].contains(&keyword) {
            found.extend(within(inner, &place));
            found.push((place, inner));
        }
    }
    found
}

fn required(node: &Value) -> Vec<String> {
    let names = node["required"].as_array().into_iter().flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}
