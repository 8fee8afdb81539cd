//! Open unions are open for every validator: their last variant is that of unknown kinds. If one of the
//! variants is itself an open union, that one has this variant, for both.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Problems;
use crate::document::{Document, child, is_true, schema_name};
use crate::schema::variants;

/// Reports an open union of whose variants an unknown kind does not fit exactly one.
pub(super) fn lint_unknown_kinds(document: &Document, node: &Value, at: &str, problems: &mut Problems) {
    if let Some(message) = misfit(document, node) {
        problems.report(&child(at, "oneOf"), message);
    }
}

/// What is wrong with the variants of an open union.
fn misfit(document: &Document, node: &Value) -> Option<String> {
    let property = discriminator(node)?;
    let all = node.get("oneOf").and_then(Value::as_array)?;
    let open_variants: Vec<&str> = variants(node)
        .filter(|variant| document.follow(variant).is_ok_and(is_open))
        .filter_map(|variant| variant.get("$ref").and_then(Value::as_str).and_then(schema_name))
        .collect();
    let deeper = |variant: &Value| {
        let variant = document.follow(variant).unwrap_or(variant);
        is_open(variant) && variants(variant).any(|inner| document.follow(inner).is_ok_and(is_open))
    };
    if variants(node).any(deeper) {
        return Some("an open union holds an open union that holds one; two levels are generated".to_owned());
    }
    let others: Vec<&Value> = all.iter().filter(|variant| variant.get("$ref").is_none()).collect();
    match (open_variants.as_slice(), others.as_slice()) {
        ([], _) => {}
        ([_], []) => return None,
        ([inner], _) => {
            return Some(format!(
                "unknown kinds fit {inner}, which is open too; remove the variant without a $ref"
            ));
        }
        (several, _) => {
            return Some(format!(
                "unknown kinds fit each of {}; keep one of them open, and close the others",
                several.join(", ")
            ));
        }
    }
    let mut known = kinds(document, node, property);
    // The known kinds of the unions that contain it: for them it is the variant of unknown kinds.
    for (_, outer) in document.members("/components/schemas").filter(|(_, outer)| is_open(outer)) {
        let is_variant = variants(outer)
            .any(|variant| document.follow(variant).is_ok_and(|variant| std::ptr::eq(variant, node)));
        if is_variant && discriminator(outer) == Some(property) {
            known.extend(kinds(document, outer, property));
        }
    }
    let excluded: BTreeSet<String> = match others.as_slice() {
        [other] => {
            let excluded = other["properties"][property]["not"]["enum"].as_array();
            excluded.into_iter().flatten().map(Value::to_string).collect()
        }
        _ => BTreeSet::new(),
    };
    if excluded == known {
        return None;
    }
    let known: Vec<String> = known.into_iter().collect();
    Some(format!(
        "a variant of an open union is a $ref, but for the last, the variant of unknown kinds; make that {{type: object, \
         required: [{property}], properties: {{{property}: {{type: string, not: {{enum: [{}]}}}}}}}}",
        known.join(", ")
    ))
}

fn is_open(node: &Value) -> bool {
    is_true(node, "x-open-union")
}

fn discriminator(node: &Value) -> Option<&str> {
    node.pointer("/x-discriminator/propertyName").and_then(Value::as_str)
}

/// The known kinds of a union, including those of unions among its variants.
fn kinds(document: &Document, node: &Value, property: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for variant in variants(node) {
        let Ok(target) = document.follow(variant) else { continue };
        if target.get("oneOf").is_some() {
            // Its own variants only: a third level is rejected where that one is checked.
            let inner = variants(target).filter_map(|variant| document.follow(variant).ok());
            found.extend(inner.filter_map(|variant| kind(variant, property)));
        } else if let Some(kind) = kind(target, property) {
            found.insert(kind);
        }
    }
    found
}

/// The kind of an object, as JSON.
fn kind(node: &Value, property: &str) -> Option<String> {
    Some(node.get("properties")?.get(property)?.get("const")?.to_string())
}
