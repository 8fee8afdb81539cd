//! Names of schemas: `pet_list` becomes `PetList`, here and in every reference to it.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use crate::names;

const PREFIX: &str = "#/components/schemas/";

pub(super) fn adopt(document: &mut Value) {
    let Some(all) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) else {
        return;
    };
    let taken: HashSet<String> = all.keys().cloned().collect();
    let mut renamed = HashMap::new();
    let mut schemas = Map::new();
    for (name, node) in std::mem::take(all) {
        let better = names::pascal(&name);
        // Two that would become one keep their names; the lint says which to change.
        let is_free = !better.is_empty() && !schemas.contains_key(&better) && !taken.contains(&better);
        let chosen = if is_free { better } else { name.clone() };
        renamed.insert(name, chosen.clone());
        schemas.insert(chosen, node);
    }
    *all = schemas;
    refer(document, &renamed);
}

/// Corrects references, and the names to which a discriminator maps its values.
fn refer(node: &mut Value, renamed: &HashMap<String, String>) {
    let corrected = |reference: &str| {
        let name = reference.strip_prefix(PREFIX)?;
        Some(format!("{PREFIX}{}", renamed.get(name)?))
    };
    match node {
        Value::Array(items) => items.iter_mut().for_each(|item| refer(item, renamed)),
        Value::Object(members) => {
            for (key, inner) in members {
                match (key.as_str(), &mut *inner) {
                    ("$ref", Value::String(reference)) => {
                        if let Some(better) = corrected(reference) {
                            *reference = better;
                        }
                    }
                    ("mapping", Value::Object(mapping)) if mapping.values().all(Value::is_string) => {
                        for to in mapping.values_mut() {
                            let name = to.as_str().unwrap_or_default();
                            let better = corrected(name).or_else(|| renamed.get(name).cloned());
                            if let Some(better) = better {
                                *to = json!(better);
                            }
                        }
                    }
                    _ => refer(inner, renamed),
                }
            }
        }
        _ => {}
    }
}
