//! `spec/errors.json`: kinds of failure, their classes, and the codes on the wire. The types are made of
//! `spec/errors.schema.json` when the generator is built.

mod read {
    typify::import_types!(schema = "../spec/errors.schema.json");
}

use anyhow::{Context as _, Result};
use serde_json::Value;

pub(crate) use self::read::{ErrorKind, Errors};

impl Errors {
    /// What the file holds.
    ///
    /// Errors: violations of `schema`, `spec/errors.schema.json`, each with its location.
    pub(crate) fn of(errors: Value, schema: &Value) -> Result<Self> {
        super::validate::validate(&errors, "spec/errors.json", schema, "spec/errors.schema.json")?;
        serde_json::from_value(errors)
            .context("spec/errors.schema.json has changed since the generator was built: run `cargo build -p gatewright-codegen`")
    }

    /// Every class with its parent and meaning, parents before their children.
    pub(crate) fn classes(&self) -> Vec<(&str, Option<&str>, &str)> {
        let mut waiting: Vec<(&str, Option<&str>, &str)> = self
            .bases
            .iter()
            .map(|base| (base.class.as_str(), base.parent.as_deref(), base.meaning.as_str()))
            .chain(self.kinds.iter().map(|k| (k.class.as_str(), Some(k.parent.as_str()), k.meaning.as_str())))
            .collect();
        let mut ordered: Vec<(&str, Option<&str>, &str)> = Vec::new();
        while !waiting.is_empty() {
            let known = |class: &str| ordered.iter().any(|(name, ..)| *name == class);
            let Some(next) = waiting.iter().position(|(_, parent, _)| parent.is_none_or(known)) else {
                break;
            };
            ordered.push(waiting.remove(next));
        }
        ordered
    }
}
