//! Open unions are open for every validator: their last form is that of the kinds which are not known.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::codegen::load::{Document, child, variants};

/// What is wrong with an open union's last form: it has to take any kind but those of the other forms.
pub(super) fn unknown_kinds(document: &Document, node: &Value, at: &str) -> Option<(String, String)> {
    let property = node.pointer("/x-discriminator/propertyName").and_then(Value::as_str)?;
    let kind = |variant: &Value| {
        let target = document.follow(variant).ok()?;
        Some(target.get("properties")?.get(property)?.get("const")?.to_string())
    };
    let known: BTreeSet<String> = variants(node).filter_map(kind).collect();
    let forms = node.get("oneOf").and_then(Value::as_array)?;
    let others: Vec<&Value> = forms.iter().filter(|variant| variant.get("$ref").is_none()).collect();
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
    let message = format!(
        "a variant of an open union is a $ref, but for the last, the form of unknown kinds; make that {{type: object, \
         required: [{property}], properties: {{{property}: {{type: string, not: {{enum: [{}]}}}}}}}}",
        known.join(", ")
    );
    Some((child(at, "oneOf"), message))
}
