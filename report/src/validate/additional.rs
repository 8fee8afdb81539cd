//! Documents of additional checks: validated like reports, by a schema of their own.

use std::sync::LazyLock;

use serde_json::Value as Json;

use super::{Outcome, Validator};
use crate::explain::Explainer;
use crate::finding::Finding;
use crate::protocols::{PROTOCOLS_SCHEMA, ProtocolReport};
use crate::rules::OURS;
use crate::schema::Schema;
use crate::{read, typed};

static SCHEMA: LazyLock<(Json, Schema)> = LazyLock::new(|| {
    let schema: Json = serde_json::from_str(PROTOCOLS_SCHEMA).expect("the embedded schema is JSON");
    let compiled = Schema::compile(&schema).expect("the compiler knows the embedded schema");
    (schema, compiled)
});

impl Validator {
    /// The typed document of additional checks, or else the verdict that explains why there is none.
    ///
    /// ```
    /// use gatewright_report::Validator;
    ///
    /// let outcome = Validator::default().read_protocols(br#"{ "schema_version": "1.0" }"#).unwrap_err();
    /// assert_eq!(outcome.violations[0].message, "kit is missing");
    /// ```
    pub fn read_protocols(&self, document: &[u8]) -> Result<ProtocolReport, Box<Outcome>> {
        let outcome = self.judge_additional(document);
        if !outcome.valid {
            return Err(Box::new(outcome));
        }
        self.typed_additional(document).map_err(|error| {
            // Reached only if the type and the schema disagree.
            let mut findings = self.findings();
            findings.push(0, Finding::new(String::new(), "model", error).section(OURS));
            Box::new(self.outcome(document, findings, self.findings(), None))
        })
    }

    fn typed_additional(&self, document: &[u8]) -> Result<ProtocolReport, String> {
        let root = read::read(document, self.max_bytes, self.findings());
        let root = root.map_err(|_| "it was read differently before".to_owned())?;
        typed::protocols(&root).map_err(|error| error.to_string())
    }

    /// Whether a document is one of additional checks, and not a report.
    pub(crate) fn is_additional(&self, document: &[u8]) -> bool {
        document.len() <= self.max_bytes && ProtocolReport::recognizes(document)
    }

    /// The schema that orders the members of a document.
    pub(super) fn schema_of(&self, document: &[u8]) -> &Json {
        if self.is_additional(document) { &SCHEMA.0 } else { &self.schema }
    }

    /// The verdict on a document of additional checks.
    pub(super) fn judge_additional(&self, document: &[u8]) -> Outcome {
        let mut findings = self.findings();
        match read::read(document, self.max_bytes, self.findings()) {
            Ok(root) => {
                let (schema, compiled) = &*SCHEMA;
                let explainer = Explainer::new(schema, document);
                compiled.walk(&root, &mut |failure| explainer.explain(failure, &mut findings));
            }
            Err(unreadable) => findings = unreadable,
        }
        let mut outcome = self.outcome(document, findings, self.findings(), None);
        // The specification has no such document.
        for violation in &mut outcome.violations {
            violation.section = OURS;
        }
        outcome
    }
}
