//! Phase 1, load: reads the files under `spec/`, and resolves `$ref`.

mod adopt;
mod dialect;
mod parameters;

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::catalog::Catalog;
use super::errors::Errors;
use super::model::Plain;
use super::options::Options;
use super::target::{GATEWRIGHT, OPERATOR_API, Target};

/// The hand-written sources, parsed and otherwise untouched.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    /// The locations of the files generated from them.
    pub home: Target,
    /// The name of the file of `openapi` in problems.
    pub name: String,
    pub openapi: Document,
    /// What was left out of a specification of other people, and derived for it; none for our own, which keeps the house style.
    pub adopted: Option<Vec<String>>,
    pub catalog: Catalog,
    /// `spec/catalog.schema.json`.
    pub catalog_schema: Value,
    pub errors: Errors,
    /// `spec/report.schema.json`.
    pub report: Value,
    pub options: Options,
    /// The public test suite of JSON Schema.
    pub suite: Vec<SuiteFile>,
}

/// A file of the suite: schemas, each with tests.
#[derive(Debug, Clone)]
pub(crate) struct SuiteFile {
    /// Relative to the folder of the tests: `formats/uri.json`.
    pub name: String,
    pub groups: Vec<Value>,
}

impl Sources {
    /// Reads `spec/` below `root`.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        Self::of(root, OPENAPI, GATEWRIGHT)
    }

    /// Reads the specification of the operator API below `root`.
    pub(crate) fn operator_api(root: &Path) -> Result<Self> {
        Self::of(root, "spec/admin.yaml", OPERATOR_API)
    }

    fn of(root: &Path, name: &str, home: Target) -> Result<Self> {
        let spec = root.join("spec");
        let text = |name: &str| read(&spec.join(name));
        let own = Own {
            catalog: &text("catalog.json")?,
            catalog_schema: &text("catalog.schema.json")?,
            errors: &text("errors.json")?,
            errors_schema: &text("errors.schema.json")?,
            report: &text("report.schema.json")?,
            options: &text("options.json")?,
        };
        let document = Document::parse(&read(&root.join(name))?).with_context(|| name.to_owned())?;
        let suite = suite(&root.join("tests/json-schema-suite/tests"), "")?;
        Ok(Self { suite, ..own.sources(name.to_owned(), document, None, home)? })
    }

    /// Reads a specification of other people, whose clients use the hand-written half of ours. Ours are also the errors, which
    /// the transport raises, and the options of a call, with the catalog and the report that they refer to.
    pub(crate) fn of_others(openapi: &Path, home: Target) -> Result<Self> {
        let name = openapi.display().to_string();
        let (document, notes) = Document::adopt(&read(openapi)?).with_context(|| name.clone())?;
        let own = Own {
            catalog: include_str!("../../spec/catalog.json"),
            catalog_schema: include_str!("../../spec/catalog.schema.json"),
            errors: include_str!("../../spec/errors.json"),
            errors_schema: include_str!("../../spec/errors.schema.json"),
            report: include_str!("../../spec/report.schema.json"),
            options: include_str!("../../spec/options.json"),
        };
        own.sources(name, document, Some(notes), home)
    }
}

/// The texts of our own documents beside the specification.
struct Own<'a> {
    catalog: &'a str,
    catalog_schema: &'a str,
    errors: &'a str,
    errors_schema: &'a str,
    report: &'a str,
    options: &'a str,
}

impl Own<'_> {
    fn sources(
        &self,
        name: String,
        openapi: Document,
        adopted: Option<Vec<String>>,
        home: Target,
    ) -> Result<Sources> {
        let catalog_schema: Value = parsed("catalog.schema.json", self.catalog_schema)?;
        let errors_schema: Value = parsed("errors.schema.json", self.errors_schema)?;
        Ok(Sources {
            home,
            name,
            openapi,
            adopted,
            catalog: Catalog::of(self.catalog, &catalog_schema)?,
            catalog_schema,
            errors: Errors::of(parsed("errors.json", self.errors)?, &errors_schema)?,
            report: parsed("report.schema.json", self.report)?,
            options: parsed("options.json", self.options)?,
            suite: Vec::new(),
        })
    }
}

/// The files of a folder and of the folders in it, in order.
fn suite(folder: &Path, before: &str) -> Result<Vec<SuiteFile>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let name = format!("{before}{}", path.file_name().unwrap_or_default().to_string_lossy());
        if path.is_dir() {
            files.extend(suite(&path, &format!("{name}/"))?);
        } else {
            files.push(SuiteFile { groups: json(&path)?, name });
        }
    }
    Ok(files)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    parsed(&path.display().to_string(), &read(path)?)
}

fn parsed<T: serde::de::DeserializeOwned>(name: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).with_context(|| format!("{name} does not have the expected form"))
}

/// The name of the document in problems.
pub(crate) const OPENAPI: &str = "spec/openapi.yaml";

/// Methods an operation may have, as keys of a path item.
pub(crate) const METHODS: &[&str] = &["get", "post", "put", "patch", "delete"];

/// Maximum length of a chain of references.
const MAX_REFERENCES: usize = 32;

/// An OpenAPI document with its references; [`Document::resolve`] follows them.
#[derive(Debug, Clone)]
pub(crate) struct Document(pub Value);

impl Document {
    /// Parses YAML, keeping the order of members; idioms of OpenAPI 3.0 become those of 3.1. Duplicate keys are an error.
    pub(crate) fn parse(yaml: &str) -> Result<Self> {
        let mut document = yaml_value(yaml)?;
        dialect::rewrite(&mut document);
        parameters::rewrite(&mut document);
        Ok(Self(document))
    }

    /// The same for a specification of other people, with notes on what was left out and derived.
    pub(crate) fn adopt(yaml: &str) -> Result<(Self, Vec<String>)> {
        let mut document = yaml_value(yaml)?;
        let notes = adopt::adopt(&mut document);
        dialect::rewrite(&mut document);
        parameters::rewrite(&mut document);
        Ok((Self(document), notes))
    }

    /// The target of a local reference, such as `#/components/schemas/Message`.
    pub(crate) fn resolve(&self, reference: &str) -> Result<&Value> {
        let Some(pointer) = reference.strip_prefix('#') else {
            bail!("reference {reference} leaves the file; move what it points at into this document");
        };
        self.0
            .pointer(pointer)
            .with_context(|| format!("reference {reference} points at nothing; correct it"))
    }

    /// `node` itself, or the target of its reference.
    pub(crate) fn follow<'doc>(&'doc self, node: &'doc Value) -> Result<&'doc Value> {
        let mut node = node;
        for _ in 0..MAX_REFERENCES {
            match node.get("$ref").and_then(Value::as_str) {
                Some(reference) => node = self.resolve(reference)?,
                None => return Ok(node),
            }
        }
        bail!("references lead in a circle, at {}; let one of them say what it is", node["$ref"])
    }

    /// The parameters of an operation with their places in the document: its own, and those of its path that it does
    /// not override. A reference without a target is omitted; the lint reports it.
    pub(crate) fn parameters<'doc>(
        &'doc self,
        item: &'doc Value,
        operation: &'doc Value,
    ) -> Vec<(ParameterPlace, &'doc Value)> {
        let list = |node: &'doc Value| node.get("parameters").and_then(Value::as_array).into_iter().flatten();
        let key = |parameter: &Value| (text(parameter, "name").to_owned(), text(parameter, "in").to_owned());
        let own: Vec<_> = list(operation)
            .enumerate()
            .filter_map(|(index, node)| Some((ParameterPlace::Operation(index), self.follow(node).ok()?)))
            .collect();
        let shared = list(item)
            .enumerate()
            .filter_map(|(index, node)| Some((ParameterPlace::Path(index), self.follow(node).ok()?)))
            .filter(|(_, parameter)| own.iter().all(|(_, known)| key(known) != key(parameter)));
        shared.chain(own.iter().copied()).collect()
    }

    /// A named schema.
    pub(crate) fn schema(&self, name: &str) -> Option<&Value> {
        self.0.get("components")?.get("schemas")?.get(name)
    }

    /// Members of the object at a pointer, in order; none if it is absent.
    pub(crate) fn members(&self, pointer: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.0.pointer(pointer).and_then(Value::as_object).into_iter().flatten()
    }
}

fn yaml_value(yaml: &str) -> Result<Value> {
    // The YAML value rejects duplicate keys, which the JSON value would accept.
    let value: yaml_serde::Value = yaml_serde::from_str(yaml)?;
    let document = serde_json::to_value(value).context("only JSON-compatible YAML is allowed")?;
    if dialect::is_too_deep(&document) {
        bail!(
            "the document is deeper than {} levels; give schemas within it names of their own",
            dialect::MAX_DEPTH
        );
    }
    Ok(document)
}

/// The place of a parameter in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterPlace {
    /// In the path item, at this index.
    Path(usize),
    /// In the operation, at this index.
    Operation(usize),
}

/// The content of a successful response other than JSON and events; nothing if it has no content.
pub(crate) fn plain(answer: &Value) -> Option<Plain> {
    let Some(content) =
        answer.get("content").and_then(Value::as_object).filter(|content| !content.is_empty())
    else {
        return Some(Plain::Nothing);
    };
    let others =
        content.keys().filter(|kind| !["application/json", "text/event-stream"].contains(&kind.as_str()));
    let others: Vec<&str> = others.map(String::as_str).collect();
    let first = others.first()?;
    // Bytes of several media types: all of them are asked for.
    Some(if first.starts_with("text/") {
        Plain::of_media_type(first)
    } else {
        Plain::of_media_type(&others.join(", "))
    })
}

/// How a body is sent as a form.
pub(crate) const FORM: &str = "multipart/form-data";

/// The media type of an operation's request body, and what the document has of it: JSON, or else a form.
pub(crate) fn request_media(operation: &Value) -> Option<(&'static str, &Value)> {
    let content = operation.get("requestBody")?.get("content")?;
    ["application/json", FORM].into_iter().find_map(|kind| Some((kind, content.get(kind)?)))
}

/// The schema of an operation's request body.
pub(crate) fn request_schema(operation: &Value) -> Option<&Value> {
    request_media(operation)?.1.get("schema")
}

/// `#/components/schemas/Message` → `Message`.
pub(crate) fn schema_name(reference: &str) -> Option<&str> {
    reference.strip_prefix("#/components/schemas/").filter(|name| !name.contains('/'))
}

/// The JSON Pointer of a member: `/paths` + `/v1/models` → `/paths/~1v1~1models`.
pub(crate) fn child(pointer: &str, token: &str) -> String {
    format!("{pointer}/{}", token.replace('~', "~0").replace('/', "~1"))
}

/// Names in braces in a path.
pub(crate) fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
}

/// A string member, or the empty string.
pub(crate) fn text<'a>(node: &'a Value, key: &str) -> &'a str {
    node.get(key).and_then(Value::as_str).unwrap_or_default()
}
