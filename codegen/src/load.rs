//! Phase 1, load: reads the files under `spec/`. Documents of other people are adopted, and idioms of OpenAPI 3.0 become
//! those of 3.1. References stay, except that the schema of a parameter takes the place of a reference to it.

mod adopt;
mod dialect;
mod parameters;

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::catalog::Catalog;
use super::document::Document;
use super::errors::Errors;
use super::options::Options;
use super::target::{GATEWRIGHT, OPERATOR_API, Target};

/// The hand-written sources, parsed and otherwise untouched.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    /// The locations of the files generated from them.
    pub target: Target,
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
    /// The public test suite of JSON Schema; empty beside other specifications than ours.
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
        let suite = suite(&root.join("tests/json-schema-suite/tests"), "")?;
        Ok(Self { suite, ..Self::of(root, OPENAPI, GATEWRIGHT)? })
    }

    /// Reads the specification of the operator API below `root`.
    pub(crate) fn operator_api(root: &Path) -> Result<Self> {
        Self::of(root, "spec/admin.yaml", OPERATOR_API)
    }

    fn of(root: &Path, name: &str, target: Target) -> Result<Self> {
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
        let document = Document::parse(name, &read(&root.join(name))?)?;
        own.sources(document, None, target)
    }

    /// Reads a specification of other people, whose clients use the hand-written half of ours. Ours are also the errors, which
    /// the transport raises, and the options of a call, with the catalog and the report that they refer to.
    pub(crate) fn of_others(openapi: &Path, target: Target) -> Result<Self> {
        let (document, notes) = Document::adopt(&openapi.display().to_string(), &read(openapi)?)?;
        let own = Own {
            catalog: include_str!("../../spec/catalog.json"),
            catalog_schema: include_str!("../../spec/catalog.schema.json"),
            errors: include_str!("../../spec/errors.json"),
            errors_schema: include_str!("../../spec/errors.schema.json"),
            report: include_str!("../../spec/report.schema.json"),
            options: include_str!("../../spec/options.json"),
        };
        own.sources(document, Some(notes), target)
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
    fn sources(&self, openapi: Document, adopted: Option<Vec<String>>, target: Target) -> Result<Sources> {
        let catalog_schema: Value = parsed("catalog.schema.json", self.catalog_schema)?;
        let errors_schema: Value = parsed("errors.schema.json", self.errors_schema)?;
        Ok(Sources {
            target,
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

impl Document {
    /// Parses YAML, keeping the order of members; idioms of OpenAPI 3.0 become those of 3.1. Duplicate keys are an error.
    /// name: of the file, in problems.
    pub(crate) fn parse(name: &str, yaml: &str) -> Result<Self> {
        let root = yaml_value(yaml).with_context(|| name.to_owned())?;
        Ok(Self::rewritten(name, root))
    }

    /// The same for a specification of other people, with notes on what was left out and derived.
    pub(crate) fn adopt(name: &str, yaml: &str) -> Result<(Self, Vec<String>)> {
        let mut root = yaml_value(yaml).with_context(|| name.to_owned())?;
        let notes = adopt::adopt(&mut root);
        Ok((Self::rewritten(name, root), notes))
    }

    fn rewritten(name: &str, mut root: Value) -> Self {
        dialect::rewrite(&mut root);
        parameters::rewrite(&mut root);
        Self { name: name.to_owned(), root }
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
