//! The validator: takes the bytes of a report, and returns all violations or the typed report.
//!
//! It validates against the schema of reports itself (`spec/report.schema.json`), with formats asserted, never
//! against the typed model: typed models accept and reject some documents wrongly.

mod additional;
mod outcome;
mod own_names;

use std::sync::{Arc, LazyLock};

use serde_json::Value as Json;

pub use self::outcome::Outcome;
use self::own_names::KnownNames;
use crate::fast_path::ValidatedObjects;
use crate::finding::Finding;
use crate::findings::{Findings, MAX_FINDINGS, MAX_FINDINGS_LIMIT};
use crate::generated::checker::Names;
use crate::model::Report;
use crate::profile::Profile;
use crate::rules::{OURS, SCHEMA};
use crate::schema::Schema;
use crate::tree::Node;
use crate::{advise, canonical, explain, fast_path, read, typed};

/// Default maximum size of a document: 16 MiB; see [`ValidatorBuilder::max_bytes`]. Together with [`MAX_FINDINGS`], it
/// limits the memory of a validation.
///
/// ```
/// use gatewright_report::{MAX_BYTES, validate};
///
/// let outcome = validate(&vec![b' '; MAX_BYTES + 1]);
/// assert_eq!(outcome.violations[0].rule, "size");
/// ```
pub const MAX_BYTES: usize = 16 << 20;

/// Upper limit of [`ValidatorBuilder::max_bytes`]: offsets are stored in 32 bits.
pub(crate) const MAX_BYTES_LIMIT: usize = u32::MAX as usize;

/// Maximum length of a canonical form, as a multiple of the largest document. For a report, it is less than three times
/// as long as the report; but each line is indented, and a document that is not a report may nest 128 levels deep.
const CANONICAL_GROWTH: usize = 8;

static DEFAULT: LazyLock<Validator> = LazyLock::new(|| Validator::builder().build());

/// Validates reports against their schema and rules, and the additional checks beside them
/// ([`ProtocolReport`](crate::ProtocolReport)) against theirs. Cheap to clone. Keep it: building one compiles the schema.
///
/// ```
/// use gatewright_report::Validator;
///
/// let outcome = Validator::default().validate(br#"{"schema_version": "1.0"}"#);
/// assert!(!outcome.valid);
/// println!("{}", outcome.violations[0].message);
/// ```
#[derive(Clone)]
pub struct Validator {
    schema: Arc<Json>,
    compiled: Arc<Schema>,
    /// The names of the schema, for documents that need no tree; `None` if there are too many.
    names: Arc<Option<Names>>,
    /// The validators for the names that reports declared recently; `None`: this one has the names of a deployment.
    known_names: Option<KnownNames>,
    /// Whether names that a report declares are valid.
    own_names: bool,
    strict: bool,
    max_bytes: usize,
    max_findings: usize,
}

/// The settings of a deployment for its own reports; see [`Validator::builder`].
///
/// ```
/// use gatewright_report::Validator;
///
/// let validator = Validator::builder().kit_name("our-kit").models(["our-model"]).strict(true).build();
/// assert!(!validator.check(b"{}").valid);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ValidatorBuilder {
    models: Vec<String>,
    kit_name: Option<String>,
    own_names: bool,
    strict: bool,
    max_bytes: usize,
    max_findings: usize,
}

impl Default for Validator {
    /// A validator with the settings of the specification: its kit name, its models, not strict.
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
    /// A builder with the settings of the specification.
    ///
    /// ```
    /// let validator = gatewright_report::Validator::builder().strict(true).max_bytes(1 << 20).build();
    /// assert_eq!(validator.max_bytes(), 1 << 20);
    /// ```
    pub fn builder() -> ValidatorBuilder {
        ValidatorBuilder {
            models: Vec::new(),
            kit_name: None,
            own_names: false,
            strict: false,
            max_bytes: MAX_BYTES,
            max_findings: MAX_FINDINGS,
        }
    }

    /// Validates one document and, if it is a valid report, returns it typed. Additional checks are recognized by their
    /// members, and validated too: [`Self::read_protocols`] returns them typed.
    ///
    /// ```
    /// use gatewright_report::{Profile, Report, Validator};
    ///
    /// let document = Report::skeleton(&Profile::default(), "https://gateway.example.com").to_json();
    /// let outcome = Validator::default().validate(document.as_bytes());
    /// assert_eq!(outcome.report.unwrap().endpoint, "https://gateway.example.com");
    /// ```
    pub fn validate(&self, document: &[u8]) -> Outcome {
        self.judge(document, true)
    }

    /// Like [`Self::validate`], without the typed report.
    ///
    /// ```
    /// let outcome = gatewright_report::Validator::default().check(br#"{ "schema_version": "2.0" }"#);
    /// assert!(!outcome.valid);
    /// ```
    pub fn check(&self, document: &[u8]) -> Outcome {
        self.judge(document, false)
    }

    /// Whether the checker that reads once is sure of the document; for tests and measurements.
    #[doc(hidden)]
    pub fn is_surely_sound(&self, document: &[u8]) -> bool {
        self.sound(document, false).is_ok()
    }

    /// [`Self::validate`], always through the tree, which is otherwise built only for documents that the checker is not
    /// sure of; for tests and measurements.
    #[doc(hidden)]
    pub fn validate_by_tree(&self, document: &[u8]) -> Outcome {
        self.explained(document, true, ValidatedObjects::new(None))
    }

    /// The typed report of a valid document, or else the verdict that explains why there is none.
    ///
    /// ```
    /// use gatewright_report::{Profile, Report, Validator};
    ///
    /// let document = Report::skeleton(&Profile::default(), "https://gateway.example.com").to_json();
    /// let report = Validator::default().read(document.as_bytes()).unwrap();
    /// assert_eq!(report.endpoint, "https://gateway.example.com");
    /// ```
    pub fn read(&self, document: &[u8]) -> Result<Report, Box<Outcome>> {
        let mut outcome = self.judge(document, true);
        match outcome.report.take() {
            Some(report) if outcome.valid => Ok(report),
            // Additional checks: the verdict says what a report has instead.
            None if outcome.valid => {
                Err(Box::new(self.explained(document, false, ValidatedObjects::new(None))))
            }
            _ => Err(Box::new(outcome)),
        }
    }

    /// A document in canonical form: members in the order of the schema, two spaces per level, one line break at the
    /// end, integers as digits. The document may be invalid, but must be JSON; otherwise, the verdict locates the
    /// syntax error. Rejects a canonical form longer than eight times [`Self::max_bytes`], which a report's never is.
    ///
    /// ```
    /// use gatewright_report::Validator;
    ///
    /// let canonical = Validator::default().canonical(br#"{ "kit": {}, "schema_version": "1.0" }"#).unwrap();
    /// assert!(canonical.starts_with("{\n  \"schema_version\": \"1.0\",\n"));
    /// ```
    pub fn canonical(&self, document: &[u8]) -> Result<String, Box<Outcome>> {
        match read::read(document, self.max_bytes, self.findings()) {
            Ok(root) => {
                let most = self.max_bytes.saturating_mul(CANONICAL_GROWTH);
                canonical::canonical(&root, self.schema_of(document), most).ok_or_else(|| {
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

    /// The JSON Schema that documents are validated against, with the profile's own names; for editors.
    ///
    /// ```
    /// let validator = gatewright_report::Validator::builder().kit_name("our-kit").build();
    /// assert!(validator.schema().contains("our-kit"));
    /// ```
    #[expect(clippy::missing_panics_doc, reason = "JSON always serialises")]
    pub fn schema(&self) -> String {
        serde_json::to_string_pretty(&*self.schema).expect("JSON serializes") + "\n"
    }

    /// Maximum size of a document, in bytes.
    ///
    /// ```
    /// use gatewright_report::{MAX_BYTES, Validator};
    ///
    /// assert_eq!(Validator::default().max_bytes(), MAX_BYTES);
    /// ```
    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Without the limit for untrusted documents.
    pub(crate) fn for_own_documents(mut self) -> Self {
        self.max_bytes = MAX_BYTES_LIMIT;
        self
    }

    fn findings(&self) -> Findings {
        Findings::new(self.max_findings)
    }

    fn judge(&self, document: &[u8], wanted: bool) -> Outcome {
        match self.sound(document, wanted) {
            Ok(outcome) => outcome,
            Err(_) if self.is_additional(document) => self.judge_additional(document),
            Err(sure) => match self.own_names.then(|| self.for_names_of(document)).flatten() {
                Some(own) => own.judge(document, wanted),
                None => self.explained(document, wanted, *sure),
            },
        }
    }

    /// The verdict on a document that is certainly valid, which most are: no tree is built. Err: the valid parts of any
    /// other document.
    fn sound(&self, document: &[u8], wanted: bool) -> Result<Outcome, Box<ValidatedObjects<'_>>> {
        let names = self.names.as_ref().as_ref();
        let unsure = || Box::new(ValidatedObjects::new(names));
        let judged = names.filter(|_| document.len() <= self.max_bytes);
        fast_path::decide_document(document, judged.ok_or_else(unsure)?)?;
        let report = wanted.then(|| serde_json::from_slice(document)).transpose().map_err(|_| unsure())?;
        let none = Vec::new;
        Ok(Outcome {
            valid: true,
            violations: none(),
            advisories: none(),
            more_violations: 0,
            more_advisories: 0,
            report,
            first_line: 1,
        })
    }

    /// The verdict on any document: read into a tree, except for objects that are certainly valid, and explained.
    fn explained(&self, document: &[u8], wanted: bool, sure: ValidatedObjects<'_>) -> Outcome {
        let (root, sure) = match read::read_unsure(document, self.max_bytes, self.findings(), sure) {
            Ok(read) => read,
            Err(findings) => return self.outcome(document, findings, self.findings(), None),
        };
        let mut findings = self.violations(&root, document);
        let advisories = advise::advise(&root, document, &sure, self.findings());
        let report = (wanted && findings.is_empty()).then(|| self.typed(document));
        let report = report.and_then(|report| match report {
            Ok(report) => Some(report),
            // Reached only if the model and the schema disagree, which the tests rule out. A document without a typed
            // report must still not count as valid.
            Err(error) => {
                let finding = Finding::new(String::new(), "model", error);
                findings.push(root.start(), finding.section(OURS));
                None
            }
        });
        let mut outcome = self.outcome(document, findings, advisories, report);
        self.suggest_own_names(document, &mut outcome);
        outcome
    }

    /// The typed report of a valid document with unusual notation: builds the whole tree.
    fn typed(&self, document: &[u8]) -> Result<Report, String> {
        let root = read::read(document, self.max_bytes, self.findings());
        let root = root.map_err(|_| "it was read differently before".to_owned())?;
        typed::report(&root).map_err(|error| error.to_string())
    }

    fn violations(&self, root: &Node<'_>, document: &[u8]) -> Findings {
        let mut findings = self.findings();
        let explainer = explain::Explainer::new(&self.schema, document);
        self.compiled.walk(root, &mut |failure| explainer.explain(failure, &mut findings));
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
    /// Ids that replace the tested models of the specification. `None` means those of the specification.
    ///
    /// ```
    /// use gatewright_report::{Profile, Report, Validator};
    ///
    /// let validator = Validator::builder().models(["our-model"]).build();
    /// let report = Report::skeleton(&Profile::default(), "https://gateway.example.com");
    /// assert!(!validator.check(report.to_json().as_bytes()).valid);
    /// ```
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

    /// Name that replaces the kit's constant name.
    ///
    /// ```
    /// let validator = gatewright_report::Validator::builder().kit_name("our-kit").build();
    /// assert!(!validator.check(br#"{ "kit": { "name": "another-kit" } }"#).valid);
    /// ```
    pub fn kit_name(mut self, name: impl Into<String>) -> Self {
        self.kit_name = Some(name.into());
        self
    }

    /// Sets a deployment's own kit name and models; settings that the profile lacks stay unchanged.
    ///
    /// ```
    /// use gatewright_report::{Profile, Report, Validator};
    ///
    /// let profile = Profile::read(br#"{ "models": ["our-model"] }"#)?;
    /// let report = Report::skeleton(&profile, "https://gateway.example.com");
    /// assert!(Validator::builder().profile(&profile).build().check(report.to_json().as_bytes()).valid);
    /// # Ok::<(), String>(())
    /// ```
    pub fn profile(mut self, profile: &Profile) -> Self {
        if let Some(name) = &profile.kit_name {
            self = self.kit_name(name);
        }
        if profile.models.is_empty() { self } else { self.models(&profile.models) }
    }

    /// Whether a report may have other names than those of the specification: then the kit name and the models that it
    /// declares itself (`kit.name`, `configuration.models`) are valid in all of it. Default: no. Without effect if names are
    /// set by [`Self::models`], [`Self::kit_name`] or [`Self::profile`].
    ///
    /// ```
    /// use gatewright_report::{Profile, Report, Validator};
    ///
    /// let profile = Profile::read(br#"{ "models": ["our-model"] }"#)?;
    /// let report = Report::skeleton(&profile, "https://gateway.example.com").to_json();
    /// assert!(!Validator::default().check(report.as_bytes()).valid);
    /// assert!(Validator::builder().own_names(true).build().check(report.as_bytes()).valid);
    /// # Ok::<(), String>(())
    /// ```
    pub fn own_names(mut self, own_names: bool) -> Self {
        self.own_names = own_names;
        self
    }

    /// Whether an advisory makes a document invalid. Default: no.
    ///
    /// ```
    /// use gatewright_report::{Profile, Report, Validator};
    ///
    /// let report = Report::skeleton(&Profile::default(), "https://me@gateway.example.com").to_json();
    /// assert!(Validator::default().check(report.as_bytes()).valid);
    /// assert!(!Validator::builder().strict(true).build().check(report.as_bytes()).valid);
    /// ```
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Maximum size of a document, in bytes. Default [`MAX_BYTES`], at most 4 GiB.
    ///
    /// ```
    /// let validator = gatewright_report::Validator::builder().max_bytes(4).build();
    /// assert_eq!(validator.check(b"{    }").violations[0].rule, "size");
    /// ```
    pub fn max_bytes(mut self, max_bytes: usize) -> Self {
        self.max_bytes = max_bytes.min(MAX_BYTES_LIMIT);
        self
    }

    /// Maximum number of violations that an outcome lists, and likewise of advisories; the rest are only counted.
    /// Default [`MAX_FINDINGS`], at least 1 and at most 100,000.
    ///
    /// ```
    /// let validator = gatewright_report::Validator::builder().max_findings(1).build();
    /// let outcome = validator.check(b"{}");
    /// assert_eq!(outcome.violations.len(), 1);
    /// assert!(outcome.more_violations > 0);
    /// ```
    pub fn max_findings(mut self, max_findings: usize) -> Self {
        self.max_findings = max_findings.clamp(1, MAX_FINDINGS_LIMIT);
        self
    }

    /// Compiles the schema.
    ///
    /// ```
    /// use gatewright_report::Validator;
    ///
    /// let validator = Validator::builder().models(["our-model"]).build();
    /// let another_thread = validator.clone();
    /// ```
    #[expect(clippy::missing_panics_doc, reason = "the embedded schema is sound, as the tests show")]
    pub fn build(self) -> Validator {
        let has_names = self.kit_name.is_some() || !self.models.is_empty();
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
            compiled: Arc::new(Schema::compile(&schema).expect("the compiler knows the embedded schema")),
            names: Arc::new(Names::of(&schema)),
            schema: Arc::new(schema),
            known_names: (!has_names).then(Arc::default),
            own_names: self.own_names && !has_names,
            strict: self.strict,
            max_bytes: self.max_bytes,
            max_findings: self.max_findings,
        }
    }
}

/// Replaces a rule of the specification with a deployment's own.
fn set(schema: &mut Json, place: &str, keyword: &str, value: Json) {
    let place = schema.pointer_mut(place).expect("the embedded schema has this place");
    place[keyword] = value;
    place["x-source"] = OURS.into();
}
