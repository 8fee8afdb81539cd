//! Unions: one type per variant, or for an open union one object with the members of all variants.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use super::{Lowering, SchemaContext, UnionPlace, open_values};
use crate::document::{is_true, members_of, text};
use crate::names;
use crate::schema::{is_null, merge_all_of, required_names, types, variants};

impl Lowering<'_> {
    /// A union, each variant with a name of its own.
    pub(super) fn one_of(
        &mut self,
        out: &mut Map<String, Value>,
        value: &Value,
        at: &str,
        place: &SchemaContext,
    ) -> Result<()> {
        let all = value.as_array().context("oneOf is a list")?;
        if all.iter().any(is_null) {
            out.insert("nullable".to_owned(), json!(true));
        }
        let mut variants = Vec::new();
        // Counted without null, like the names of the model.
        for (index, variant) in all.iter().filter(|variant| !is_null(variant)).enumerate() {
            let name = names::union_variant(&place.name, index);
            let is_union = all.iter().filter(|variant| !is_null(variant)).count() > 1;
            let union = if is_union { UnionPlace::Variant } else { UnionPlace::Outside };
            let inner = SchemaContext { union, ..SchemaContext::new(name, place.request) };
            let at = format!(
                "{at}/oneOf/{}",
                all.iter().position(|known| std::ptr::eq(known, variant)).unwrap_or(index)
            );
            // Strings of an open enum among other variants: the type distinguishes them, so any string.
            let variant = if open_values(variant).is_some() { &json!({"type": "string"}) } else { variant };
            variants.push(self.schema(variant, &at, &inner)?);
        }
        let keyword = if variants.len() == 1 { "allOf" } else { "oneOf" };
        out.insert(keyword.to_owned(), Value::Array(variants));
        Ok(())
    }

    /// An open union becomes one object with the members of all variants. A member is required if every variant
    /// requires it, and any value if its type differs. Unknown variants fit, too.
    pub(super) fn open_union(&mut self, node: &Value, at: &str, place: &SchemaContext) -> Result<Value> {
        let mut variants = Vec::new();
        self.variants(node, &mut variants)?;
        let mut properties: Map<String, Value> = Map::new();
        let mut required: Option<BTreeSet<String>> = None;
        for variant in &variants {
            for (name, inner) in members_of(variant, "properties") {
                let merged = match properties.get(name) {
                    None => inner.clone(),
                    Some(known) => self.unify(known, inner),
                };
                properties.insert(name.clone(), merged);
            }
            let own: BTreeSet<String> = required_names(variant).map(str::to_owned).collect();
            required = Some(match required {
                None => own,
                Some(known) => known.intersection(&own).cloned().collect(),
            });
        }
        for keyword in ["x-discriminator", "oneOf"] {
            if let Some(value) = node.get(keyword) {
                self.drop(at, keyword, value, place.enforcer());
            }
        }
        // A constant of one variant is not one of the union.
        for inner in properties.values_mut().filter_map(Value::as_object_mut) {
            if inner.shift_remove("const").is_some() {
                inner.insert("type".to_owned(), json!("string"));
            }
        }
        let merged = json!({
            "description": text(node, "description"),
            "type": "object",
            "properties": properties,
            "required": required.unwrap_or_default(),
        });
        let recorded = self.dropped.take();
        let lowered = self.schema(&merged, at, place);
        self.dropped = recorded;
        lowered
    }

    /// One schema for a member that two variants have: the same, any string, an object with the members of both, or any
    /// value.
    fn unify(&self, one: &Value, other: &Value) -> Value {
        if essence(one) == essence(other) {
            return one.clone();
        }
        let description = text(one, "description");
        match (string_like(one), string_like(other)) {
            (Some(a), Some(b)) if a || b => json!({"type": ["string", "null"], "description": description}),
            (Some(_), Some(_)) => json!({"type": "string", "description": description}),
            _ if self.is_named_object(one) && self.is_named_object(other) => {
                json!({"x-open-union": true, "oneOf": [one, other], "description": description})
            }
            _ => json!({"description": description}),
        }
    }

    /// Whether a schema refers to an object, or to an open union, which is one object here.
    fn is_named_object(&self, node: &Value) -> bool {
        let is_object =
            |schema: &Value| schema.get("properties").is_some() || is_true(schema, "x-open-union");
        node.get("$ref").is_some() && self.document.follow(node).is_ok_and(is_object)
    }

    /// The objects of an open union, those of nested unions included.
    fn variants(&self, node: &Value, found: &mut Vec<Value>) -> Result<()> {
        for variant in variants(node) {
            let variant = self.document.follow(variant)?;
            if variant.get("oneOf").is_some() {
                self.variants(variant, found)?;
            } else {
                found.push(merge_all_of(self.document, variant)?);
            }
        }
        Ok(())
    }
}

/// A schema without what does not change its type.
fn essence(node: &Value) -> Value {
    let mut node = node.clone();
    if let Some(members) = node.as_object_mut() {
        for key in
            ["description", "x-source", "x-ours", "x-added", "default", "deprecated", "examples", "title"]
        {
            members.shift_remove(key);
        }
    }
    node
}

/// Whether a schema allows only strings, and then whether null too.
fn string_like(node: &Value) -> Option<bool> {
    match types(node) {
        Ok((names, nullable)) if names == ["string"] => Some(nullable),
        _ => None,
    }
}
