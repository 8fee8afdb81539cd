//! The validator: a report's bytes in, all violations or the typed report out.
//!
//! It judges by the schema of section 2.12 itself (`spec/report.schema.json`), with formats asserted, never
//! by the typed model: typed models accept and reject some documents wrongly.

use std::sync::{Arc, LazyLock};

use serde::ser::{Serialize, SerializeStruct as _, Serializer};
use serde_json::Value as Json;

use super::compiled::{Part, Schema};
use super::finding::{Finding, OURS, Violation};
use super::findings::{Findings, MAX_FINDINGS, MAX_FINDINGS_LIMIT};
use super::model::Report;
use super::profile::Profile;
use super::tree::Node;
use super::{advise, canonical, explain, read, typed};

/// The JSON Schema of reports (section 2.12), draft 2020-12, as published in `spec/`.
pub const SCHEMA: &str = include_str!("../../../spec/report.schema.json");

/// Largest document that is read unless [`ValidatorBuilder::max_bytes`] says otherwise: 16 MiB. With
/// [`MAX_FINDINGS`] it bounds the memory of a validation.
pub const MAX_BYTES: usize = 16 << 20;

/// Upper limit of [`ValidatorBuilder::max_bytes`]: offsets are kept in 32 bits.
const MAX_BYTES_LIMIT: usize = u32::MAX as usize;

/// A canonical form is at most so many times as long as the largest document. That of a report is less than three times
/// as long as the report; but each line is indented, and a document that is none may nest 128 levels deep.
const CANONICAL_GROWTH: usize = 8;

static DEFAULT: LazyLock<Validator> = LazyLock::new(|| Validator::builder().build());

/// Checks reports against section 2.12. Cheap to clone, and made to be kept: building one compiles the schema.
#[derive(Clone)]
pub struct Validator {
    schema: Arc<Json>,
    compiled: Arc<Schema>,
    strict: bool,
    max_bytes: usize,
    max_findings: usize,
}

/// What a deployment may set for its own reports; see [`Validator::builder`].
#[derive(Debug, Clone)]
#[must_use]
pub struct ValidatorBuilder {
    models: Vec<String>,
    kit_name: Option<String>,
    strict: bool,
    max_bytes: usize,
    max_findings: usize,
}

/// Verdict on one document.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outcome {
    /// Whether the document is a valid report; with `strict`, also free of advisories.
    pub valid: bool,
    /// What breaks section 2.12, in document order: the first [`MAX_FINDINGS`] unless the validator was told otherwise.
    pub violations: Vec<Violation>,
    /// What the section allows and is suspicious all the same, in document order, as many at most. Empty when the
    /// document does not parse.
    pub advisories: Vec<Violation>,
    /// Violations that were counted and are not listed.
    pub more_violations: usize,
    /// Advisories that were counted and are not listed.
    pub more_advisories: usize,
    /// The report, if there are no violations and [`Validator::validate`] was asked.
    pub report: Option<Report>,
    /// Line on which the document begins in its file; see [`Outcome::from_line`].
    pub(super) first_line: usize,
}

impl Default for Validator {
    /// The validator of the specification: its kit name, its models, not strict.
    fn default() -> Self {
        DEFAULT.clone()
    }
}

impl std::fmt::Debug for Validator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Validator")
            .field("strict", &self.strict)
            .field("max_bytes", &self.max_bytes)
            .field("max_findings", &self.max_findings)
            .finish_non_exhaustive()
    }
}

impl Validator {
    /// Starts from the specification's own settings.
    pub fn builder() -> ValidatorBuilder {
        ValidatorBuilder {
            models: Vec::new(),
            kit_name: None,
            strict: false,
            max_bytes: MAX_BYTES,
            max_findings: MAX_FINDINGS,
        }
    }

    /// Validates one document and, if it is valid, returns it typed.
    pub fn validate(&self, document: &[u8]) -> Outcome {
        self.judge(document, true)
    }

    /// As [`Self::validate`], without making the typed report.
    pub fn check(&self, document: &[u8]) -> Outcome {
        self.judge(document, false)
    }

    /// The typed report of a valid document, or else the verdict that says why there is none.
    pub fn read(&self, document: &[u8]) -> Result<Report, Box<Outcome>> {
        let mut outcome = self.judge(document, true);
        match outcome.report.take() {
            Some(report) if outcome.valid => Ok(report),
            _ => Err(Box::new(outcome)),
        }
    }

    /// A document in canonical form: members in the order of the schema, two spaces per level, one line break at
    /// the end, integers as digits. It need not be valid, but has to be JSON; the verdict says where it is not. A form
    /// of more than eight times [`Self::max_bytes`] is refused, which a report's cannot have.
    pub fn canonical(&self, document: &[u8]) -> Result<String, Box<Outcome>> {
        match read::read(document, self.max_bytes, self.findings()) {
            Ok(root) => {
                let most = self.max_bytes.saturating_mul(CANONICAL_GROWTH);
                canonical::canonical(&root, &self.schema, most).ok_or_else(|| {
                    let mut findings = self.findings();
                    let message = "the canonical form is too long: too deep, with too much in it".to_owned();
                    let finding = Finding::new(String::new(), "size", message);
                    findings.push(root.start(), finding.expected(format!("at most {most} bytes")));
                    Box::new(self.outcome(document, findings, self.findings(), None))
                })
            }
            Err(findings) => Err(Box::new(self.outcome(document, findings, self.findings(), None))),
        }
    }

    /// The JSON Schema that documents are judged by, with the profile's own names in it; for editors.
    #[expect(clippy::missing_panics_doc, reason = "JSON always serialises")]
    pub fn schema(&self) -> String {
        serde_json::to_string_pretty(&*self.schema).expect("JSON serialises") + "\n"
    }

    /// Largest document that is read, in bytes.
    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Without the bound that is there for what comes from elsewhere.
    pub(super) fn for_own_documents(mut self) -> Self {
        self.max_bytes = MAX_BYTES_LIMIT;
        self
    }

    fn findings(&self) -> Findings {
        Findings::new(self.max_findings)
    }

    fn judge(&self, document: &[u8], wanted: bool) -> Outcome {
        let root = match read::read(document, self.max_bytes, self.findings()) {
            Ok(root) => root,
            Err(findings) => return self.outcome(document, findings, self.findings(), None),
        };
        let mut findings = self.violations(&root, document);
        let report = match typed::report(&root) {
            _ if !wanted || !findings.is_empty() => None,
            Ok(report) => Some(report),
            // Reached only if the model and the schema disagree, which the tests rule out; were it to
            // happen, a document that cannot be handed over must not pass for valid.
            Err(error) => {
                let finding = Finding::new(String::new(), "model", error.to_string());
                findings.push(root.start(), finding.section(OURS));
                None
            }
        };
        self.outcome(document, findings, advise::advise(&root, self.findings()), report)
    }

    fn violations(&self, root: &Node<'_>, document: &[u8]) -> Findings {
        let mut findings = self.findings();
        for Part { pointer, node, schema } in self.compiled.faulty(root) {
            let explainer = explain::Explainer::new(&self.schema, node, &pointer, document);
            for error in schema.iter_errors(node) {
                explainer.explain(&error, &mut findings);
            }
        }
        findings
    }

    fn outcome(
        &self,
        document: &[u8],
        violations: Findings,
        advisories: Findings,
        report: Option<Report>,
    ) -> Outcome {
        let valid = violations.is_empty() && (advisories.is_empty() || !self.strict);
        let (violations, more_violations) = violations.place(document);
        let (advisories, more_advisories) = advisories.place(document);
        Outcome { valid, violations, advisories, more_violations, more_advisories, report, first_line: 1 }
    }
}

impl ValidatorBuilder {
    /// Ids that stand in for the tested models of the specification. None means the specification's.
    pub fn models<I: IntoIterator<Item: Into<String>>>(mut self, ids: I) -> Self {
        self.models.clear();
        for id in ids {
            let id = id.into();
            if !self.models.contains(&id) {
                self.models.push(id);
            }
        }
        self
    }

    /// Name that stands in for the kit's constant name.
    pub fn kit_name(mut self, name: impl Into<String>) -> Self {
        self.kit_name = Some(name.into());
        self
    }

    /// A deployment's own kit name and models; what the profile leaves out stays as it was.
    pub fn profile(mut self, profile: &Profile) -> Self {
        if let Some(name) = &profile.kit_name {
            self = self.kit_name(name);
        }
        if profile.models.is_empty() { self } else { self.models(&profile.models) }
    }

    /// Whether an advisory makes a document invalid. Default: no.
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Largest document to read, in bytes. Default [`MAX_BYTES`], at most 4 GiB.
    pub fn max_bytes(mut self, max_bytes: usize) -> Self {
        self.max_bytes = max_bytes.min(MAX_BYTES_LIMIT);
        self
    }

    /// Most violations, and most advisories, that an outcome lists; the rest is counted. Default [`MAX_FINDINGS`], at
    /// least 1 and at most 100,000.
    pub fn max_findings(mut self, max_findings: usize) -> Self {
        self.max_findings = max_findings.clamp(1, MAX_FINDINGS_LIMIT);
        self
    }

    /// Compiles the schema.
    #[expect(clippy::missing_panics_doc, reason = "the embedded schema is sound, as the tests show")]
    pub fn build(self) -> Validator {
        let mut schema: Json = serde_json::from_str(SCHEMA).expect("the embedded schema is JSON");
        if let Some(name) = self.kit_name {
            set(&mut schema, "/$defs/kit/properties/name", "const", name.into());
        }
        if !self.models.is_empty() {
            let ids: Vec<Json> = self.models.into_iter().map(Json::String).collect();
            let ids_or_null = ids.iter().cloned().chain([Json::Null]).collect();
            set(&mut schema, "/$defs/model_id", "enum", Json::Array(ids));
            set(&mut schema, "/$defs/model_id_or_null", "enum", Json::Array(ids_or_null));
        }
        Validator {
            compiled: Arc::new(Schema::new(&schema)),
            schema: Arc::new(schema),
            strict: self.strict,
            max_bytes: self.max_bytes,
            max_findings: self.max_findings,
        }
    }
}

/// Sets a rule that is a deployment's own from here on, and not the specification's.
fn set(schema: &mut Json, place: &str, keyword: &str, value: Json) {
    let place = schema.pointer_mut(place).expect("the embedded schema has this place");
    place[keyword] = value;
    place["x-source"] = OURS.into();
}

impl Outcome {
    /// Gives the findings their lines in a file in which the document begins on this line, as it does in NDJSON.
    #[must_use]
    pub fn from_line(mut self, line: usize) -> Self {
        for finding in self.violations.iter_mut().chain(&mut self.advisories) {
            finding.line = finding.line - self.first_line + line;
        }
        self.first_line = line;
        self
    }

    /// All findings, each with whether it makes the document invalid: violations do, advisories only where there
    /// is nothing else that did.
    pub(super) fn graded(&self) -> impl Iterator<Item = (&Violation, bool)> {
        let advisories_count = self.advisories_count();
        let violations = self.violations.iter().map(|violation| (violation, true));
        violations.chain(self.advisories.iter().map(move |advisory| (advisory, advisories_count)))
    }

    /// Whether something of what is counted and not listed makes the document invalid, as in [`Self::graded`].
    pub(super) fn more_counts(&self) -> bool {
        self.more_violations > 0 || self.advisories_count()
    }

    fn advisories_count(&self) -> bool {
        !self.valid && self.violations.is_empty()
    }

    /// Why the document is invalid, on one line: the first finding that makes it so, and how many more do. Violations
    /// do, advisories only where there is nothing else that did. Empty if nothing does.
    pub fn summary(&self) -> String {
        let (listed, more) = if self.advisories_count() {
            (&self.advisories, self.more_advisories)
        } else {
            (&self.violations, self.more_violations)
        };
        let Some((first, others)) = listed.split_first() else { return String::new() };
        match others.len() + more {
            0 => first.message.clone(),
            more => format!("{} (and {more} more)", first.message),
        }
    }

    /// What is counted and not listed, in words: `not listed: 4000 violations, 2 advisories`. `None` if there is nothing.
    pub fn more(&self) -> Option<String> {
        let counts = [
            (self.more_violations, "violation", "violations"),
            (self.more_advisories, "advisory", "advisories"),
        ];
        let words = |(count, one, many): (usize, &str, &str)| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            _ => Some(format!("{count} {many}")),
        };
        let parts: Vec<String> = counts.into_iter().filter_map(words).collect();
        (!parts.is_empty()).then(|| format!("not listed: {}", parts.join(", ")))
    }

    /// The verdict as JSON text, on one line:
    /// `{"valid","violations":[…],"advisories":[…],"more_violations","more_advisories"}`.
    #[expect(clippy::missing_panics_doc, reason = "strings and numbers always serialise")]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers serialise")
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut outcome = serializer.serialize_struct("Outcome", 5)?;
        outcome.serialize_field("valid", &self.valid)?;
        outcome.serialize_field("violations", &self.violations)?;
        outcome.serialize_field("advisories", &self.advisories)?;
        outcome.serialize_field("more_violations", &self.more_violations)?;
        outcome.serialize_field("more_advisories", &self.more_advisories)?;
        outcome.end()
    }
}
