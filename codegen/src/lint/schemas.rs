//! Schemas: each by itself, and those in it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Lint, bounds, unions, value_types};
use crate::document::{child, is_true, items_of, members_of, schema_name, text};
use crate::names;
use crate::schema::{is_null, subschemas, types, variants};
use crate::vocabulary::SCHEMA_KEYWORDS;

impl Lint<'_> {
    pub(super) fn schemas(&mut self) {
        for (name, schema) in self.document.members("/components/schemas") {
            let at = child("/components/schemas", name);
            if schema.get("x-source").is_none() {
                self.source(schema, &at);
            }
            if names::pascal(name) != *name {
                let better = names::pascal(name);
                self.report(
                    &at,
                    format!("a schema's name is PascalCase in every language; rename it to `{better}`"),
                );
            }
            if types(schema).is_ok_and(|(_, nullable)| nullable) || variants(schema).any(is_null) {
                self.report(
                    &at,
                    "a named schema is not null; where it may be, write oneOf: [{$ref: …}, {type: \"null\"}]",
                );
            }
            if text(schema, "description").is_empty() {
                self.report(&at, "description is missing; it becomes the documentation in every language");
            }
            self.schema(schema, &at);
        }
    }

    pub(super) fn schema(&mut self, node: &Value, at: &str) {
        if node.is_boolean() {
            return;
        }
        self.keys(node, at, "a schema", SCHEMA_KEYWORDS);
        if let Some(reference) = node.get("$ref").and_then(Value::as_str)
            && schema_name(reference).and_then(|name| self.document.schema(name)).is_none()
        {
            self.report(&child(at, "$ref"), format!("{reference} names no schema; correct it"));
        }
        if node.get("x-source").is_some() {
            self.source(node, at);
        }
        self.union(node, at);
        self.member_attributes(node, at);
        self.values(node, at);
        if node.get("x-json-mapping").is_some() {
            self.one_of(node, at, "x-json-mapping", &["protobuf"]);
        }
        self.conveniences(node, at);
        bounds::lint_origins(node, at, &mut self.problems);
        value_types::lint_types(self.document, node, at, &mut self.problems);
        let mut fields: BTreeMap<String, &String> = BTreeMap::new();
        for (name, _) in members_of(node, "properties") {
            let at = child(&child(at, "properties"), name);
            if name == "extra" {
                self.report(
                    &at,
                    "`extra` is where unknown members are kept in Rust; the property needs another name",
                );
            }
            if let Some(first) = fields.insert(names::snake(name), name) {
                self.report(&at, format!("`{name}` and `{first}` become the same identifier; rename one"));
            }
        }
        for required in items_of(node, "required") {
            let known = node.get("properties").and_then(|all| all.get(required.as_str()?)).is_some();
            // A bare {required: […]} is a condition on the object around it.
            if !known && node.get("properties").is_some() {
                self.report(
                    &child(at, "required"),
                    format!("{required} is required but no property; add it or remove it"),
                );
            }
        }
        for (pointer, inner) in subschemas(node, at) {
            self.schema(inner, &pointer);
        }
    }

    fn union(&mut self, node: &Value, at: &str) {
        if node.get("x-open-union").is_some() && node.get("oneOf").is_none() {
            self.report(at, "x-open-union belongs to a oneOf; add the variants or remove it");
        }
        if let Some(variants) = node.get("anyOf").and_then(Value::as_array) {
            // Conditions on which members are present are enforced by `limits`; a choice of types is a oneOf.
            let is_condition =
                |variant: &Value| variant.get("required").is_some() && variant.get("type").is_none();
            if !variants.iter().all(is_condition) {
                self.report(
                    &child(at, "anyOf"),
                    "anyOf may only list {required: […]}, with what these members must be; a choice of types is a oneOf",
                );
            }
        }
        if is_true(node, "x-open-union") {
            unions::lint_unknown_kinds(self.document, node, at, &mut self.problems);
        }
    }

    /// Values of an enum must differ as identifiers: `16:9` and `1:69` are both `X169` in Rust.
    fn values(&mut self, node: &Value, at: &str) {
        for key in ["enum", "x-extensible-enum"] {
            let mut identifiers: BTreeMap<String, &str> = BTreeMap::new();
            let values = items_of(node, key);
            // null is an option beside the type null, and no identifier.
            for value in values.filter(|value| !value.is_null()) {
                let Some(value) = value.as_str() else {
                    self.report(
                        &child(at, key),
                        format!("{value} is no string; only string enums are generated"),
                    );
                    continue;
                };
                if let Some(first) = identifiers.insert(names::variant(value), value) {
                    let both = names::variant(value);
                    self.report(
                        &child(at, key),
                        format!("`{first}` and `{value}` both become the identifier `{both}`; use a plain string with a pattern"),
                    );
                }
            }
        }
    }
}
