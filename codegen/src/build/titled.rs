//! The model of a JSON Schema that stands alone (that of the report, that of the catalog): the same kind of named types
//! as those of the API, in a list of their own. A type is named by its `title`; an inline enum with a title is a type
//! of its own.

use std::collections::HashSet;

use anyhow::{Context as _, Result, bail};
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::Builder;
use crate::document::{Document, child, is_true, text};
use crate::model::Schema;
use crate::names;

/// Builds the types of a schema, beginning with that of the document. `file`: its name in problems.
pub(super) fn build(file: &str, schema: &Value) -> Result<IndexMap<String, Schema>> {
    let mut components = Components { file, schema, named: Map::new() };
    components.add(schema, "", "")?;
    for (key, node) in schema["$defs"].as_object().into_iter().flatten() {
        components.add(node, &child("/$defs", key), text(schema, "x-source"))?;
    }
    let named = components.named;
    let document = Document { name: file.to_owned(), root: json!({"components": {"schemas": named}}) };
    let mut builder = Builder {
        document: &document,
        schemas: IndexMap::new(),
        error_bodies: Vec::new(),
        form_bodies: HashSet::new(),
    };
    for (name, node) in document.members("/components/schemas") {
        builder.component(name, node).with_context(|| format!("{file}: {name}"))?;
    }
    Ok(builder.schemas)
}

/// Brings the schema into the form of the components of an OpenAPI document.
struct Components<'a> {
    file: &'a str,
    schema: &'a Value,
    named: Map<String, Value>,
}

impl Components<'_> {
    /// Adds a schema under the name that its title gives.
    fn add(&mut self, node: &Value, at: &str, source: &str) -> Result<()> {
        let name = self.name_of(node, at)?;
        // Reserve the place, so that inline enums follow the type they come from.
        if self.named.insert(name.clone(), Value::Null).is_some() {
            bail!("{}#{at}: two types are called {name}; change a title", self.file);
        }
        let own = text(node, "x-source");
        let source = if own.is_empty() { source } else { own };
        let mut body = self.converted(node, at, source, true)?;
        body["x-source"] = json!(source);
        // The members are listed next to the conditions, which are for validators.
        for key in ["allOf", "$defs"] {
            body.as_object_mut().into_iter().for_each(|members| _ = members.shift_remove(key));
        }
        self.named.insert(name, body);
        Ok(())
    }

    /// `source`: the section of the type that the schema belongs to.
    fn converted(&mut self, node: &Value, at: &str, source: &str, is_named: bool) -> Result<Value> {
        if let Some(reference) = node.get("$ref").and_then(Value::as_str) {
            let mut referring = self.reference(reference)?;
            if let Some(description) = node.get("description") {
                referring["description"] = description.clone();
            }
            return Ok(referring);
        }
        let Some(members) = node.as_object() else { return Ok(node.clone()) };
        if !is_named && node.get("title").is_some() && node.get("enum").is_some() {
            self.add(node, at, source)?;
            return Ok(
                json!({"$ref": pointer(&self.name_of(node, at)?), "description": text(node, "description")}),
            );
        }
        let is_configured = is_true(node, "x-configured");
        let mut out = Map::new();
        for (key, value) in members {
            let converted = match key.as_str() {
                "properties" => {
                    let mut properties = Map::new();
                    for (name, inner) in value.as_object().into_iter().flatten() {
                        let at = child(&child(at, key), name);
                        properties.insert(name.clone(), self.converted(inner, &at, source, false)?);
                    }
                    Value::Object(properties)
                }
                "oneOf" => {
                    let variants = value.as_array().into_iter().flatten().enumerate();
                    let variants: Result<Vec<Value>> = variants
                        .map(|(index, variant)| {
                            self.converted(
                                variant,
                                &child(&child(at, key), &index.to_string()),
                                source,
                                false,
                            )
                        })
                        .collect();
                    Value::Array(variants?)
                }
                "items" => self.converted(value, &child(at, key), source, false)?,
                // The words of the standard profile; another profile has others.
                "enum" if is_configured => {
                    out.insert("x-extensible-enum".to_owned(), value.clone());
                    continue;
                }
                "const" if is_configured => {
                    out.insert("x-extensible-enum".to_owned(), json!([value]));
                    continue;
                }
                _ => value.clone(),
            };
            out.insert(key.clone(), converted);
        }
        if node.get("enum").and_then(Value::as_array).is_some_and(|words| words.contains(&Value::Null)) {
            out.insert("type".to_owned(), json!(["string", "null"]));
        } else if is_nullable_object(node) {
            // A separate type is the object itself; references to it may be null.
            out.insert("type".to_owned(), json!("object"));
        }
        Ok(Value::Object(out))
    }

    fn reference(&self, reference: &str) -> Result<Value> {
        let target = reference.strip_prefix('#').and_then(|at| self.schema.pointer(at));
        let target = target.with_context(|| format!("{}: {reference} points at nothing", self.file))?;
        let to = json!({"$ref": pointer(&self.name_of(target, reference.trim_start_matches('#'))?)});
        Ok(if is_nullable_object(target) {
            json!({"oneOf": [to, {"type": "null"}], "description": text(target, "description")})
        } else {
            to
        })
    }

    fn name_of(&self, node: &Value, at: &str) -> Result<String> {
        match text(node, "title") {
            "" => bail!("{}#{at}: title is missing; it names the type in every language", self.file),
            title => Ok(names::pascal(title)),
        }
    }
}

fn pointer(name: &str) -> String {
    format!("#/components/schemas/{name}")
}

fn is_nullable_object(node: &Value) -> bool {
    node["type"]
        .as_array()
        .is_some_and(|types| types.contains(&json!("object")) && types.contains(&json!("null")))
}
