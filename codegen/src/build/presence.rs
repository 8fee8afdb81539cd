//! Which members of a response must be present together: `if`, `then`, `else` and `anyOf` of response schemas.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::document::{Document, child, members_of};
use crate::model::{Api, Rule};
use crate::schema::{required_names, subschemas};

/// Notes the rules of every schema that an answer reaches.
pub(super) fn note_rules(api: &mut Api, document: &Document) -> Result<()> {
    for (name, schema) in api.schemas.iter_mut().filter(|(_, schema)| schema.in_response) {
        let Some(node) = document.schema(name) else { continue };
        let place = document.place(&child("/components/schemas", name));
        schema.rules = rules(node).with_context(|| place.clone())?;
        let inner = || within(node, "").into_iter().find(|(_, inner)| has_rules(inner));
        if let Some((at, _)) = (!schema.in_request).then(inner).flatten() {
            bail!(
                "{place}{at}: nothing would check what it requires together; move it into a schema of its own"
            );
        }
    }
    Ok(())
}

fn rules(node: &Value) -> Result<Vec<Rule>> {
    let mut rules = Vec::new();
    if let Some(branches) = node["anyOf"].as_array() {
        let mut any_of = Vec::new();
        for branch in branches {
            let [one] = required_names(branch).collect::<Vec<_>>()[..] else {
                bail!("a branch of anyOf requires one member; write one for each");
            };
            any_of.push(one.to_owned());
        }
        rules.push(Rule { when: None, any_of });
    }
    let mut node = node;
    while let Some(condition) = node.get("if") {
        let constant = |(member, schema): (&String, &Value)| {
            schema["const"].as_str().map(|value| (member.clone(), value.to_owned()))
        };
        let constants: Option<Vec<_>> = members_of(condition, "properties").map(constant).collect();
        let Some([(member, value)]) = constants.as_deref() else {
            bail!("a condition compares one member with a constant string; write it so");
        };
        if !required_names(condition).eq([member.as_str()]) {
            bail!("a condition holds of an object without {member}, too; require it there");
        }
        for needed in required_names(&node["then"]) {
            rules.push(Rule { when: Some((member.clone(), value.clone())), any_of: vec![needed.to_owned()] });
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
