//! Phase 1, load: reads the files under `spec/` and finds what a `$ref` points at.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::model::{Catalog, Errors};

/// The hand-written sources, parsed and otherwise untouched.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    pub openapi: Document,
    pub catalog: Catalog,
    pub errors: Errors,
    /// `spec/report.schema.json`.
    pub report: Value,
}

impl Sources {
    /// Reads `spec/` below `root`.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let spec = root.join("spec");
        Ok(Self {
            openapi: Document::parse(&read(&spec.join("openapi.yaml"))?).context("spec/openapi.yaml")?,
            catalog: json(&spec.join("catalog.json"))?,
            errors: json(&spec.join("errors.json"))?,
            report: json(&spec.join("report.schema.json"))?,
        })
    }
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    serde_json::from_str(&read(path)?)
        .with_context(|| format!("{} does not have the expected form", path.display()))
}

/// An OpenAPI document whose references stay as they are; [`Document::resolve`] follows them.
#[derive(Debug, Clone)]
pub(crate) struct Document(pub Value);

impl Document {
    /// Parses YAML, keeping the order of members. Duplicate keys are an error.
    pub(crate) fn parse(yaml: &str) -> Result<Self> {
        // Through the YAML value first: it refuses duplicate keys, which the JSON value would let pass.
        let value: yaml_serde::Value = yaml_serde::from_str(yaml)?;
        Ok(Self(serde_json::to_value(value).context("only JSON-compatible YAML is allowed")?))
    }

    /// What a local reference such as `#/components/schemas/Message` points at.
    pub(crate) fn resolve(&self, reference: &str) -> Result<&Value> {
        let Some(pointer) = reference.strip_prefix('#') else {
            bail!("reference {reference} leaves the file; move what it points at into spec/openapi.yaml");
        };
        self.0
            .pointer(pointer)
            .with_context(|| format!("reference {reference} points at nothing; correct it"))
    }

    /// `node` itself, or what it refers to.
    pub(crate) fn follow<'doc>(&'doc self, node: &'doc Value) -> Result<&'doc Value> {
        match node.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.follow(self.resolve(reference)?),
            None => Ok(node),
        }
    }

    /// A named schema.
    pub(crate) fn schema(&self, name: &str) -> Option<&Value> {
        self.0.get("components")?.get("schemas")?.get(name)
    }

    /// Members of an object found by pointer, in order; none if it is absent.
    pub(crate) fn members(&self, pointer: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.0.pointer(pointer).and_then(Value::as_object).into_iter().flatten()
    }
}

/// `#/components/schemas/Message` → `Message`.
pub(crate) fn schema_name(reference: &str) -> Option<&str> {
    reference.strip_prefix("#/components/schemas/").filter(|name| !name.contains('/'))
}

/// The JSON Pointer of a member: `/paths` + `/v1/models` → `/paths/~1v1~1models`.
pub(crate) fn child(pointer: &str, token: &str) -> String {
    format!("{pointer}/{}", token.replace('~', "~0").replace('/', "~1"))
}

/// A string member, or the empty string.
pub(crate) fn text<'a>(node: &'a Value, key: &str) -> &'a str {
    node.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The described variants of a `oneOf`: of an open union, all but the form that stands for unknown kinds.
pub(crate) fn variants(node: &Value) -> impl Iterator<Item = &Value> {
    let is_open = node.get("x-open-union") == Some(&Value::Bool(true));
    let all = node.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    all.filter(move |variant| !is_open || variant.get("$ref").is_some())
}
