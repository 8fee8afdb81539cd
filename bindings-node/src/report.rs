//! Reports: takes bytes, and returns the core's verdicts as JSON, or nothing for a clean document; pages and other forms
//! as text.

#![expect(clippy::needless_pass_by_value, reason = "napi hands arguments over by value")]

use std::io;
use std::path::Path;

use gatewright::report::{
    Diff, EvidenceFile, Outcome, Source, Thresholds, Validator as Core, Violation, junit,
};
use gatewright::{Error, ErrorKind};
use napi::Env;
use napi::bindgen_prelude::{Either, PromiseRaw, Uint8Array};
use napi_derive::napi;
use serde::{Serialize, Serializer};

use crate::error::describe;
use crate::lifetime::{self, PromiseValue};

/// How to validate documents; missing settings are those of the specification.
#[napi(object, object_to_js = false)]
pub struct ValidatorOptions {
    /// Whether advisories count.
    pub strict: Option<bool>,
    /// Whether a report may have names of its own.
    pub own_names: Option<bool>,
    /// Model ids in place of the tested ones.
    pub models: Option<Vec<String>>,
    /// Name of the kit in place of the standard one.
    pub kit_name: Option<String>,
    /// Maximum size of a document, in bytes.
    pub max_bytes: Option<u32>,
    /// Maximum number of violations that a verdict lists, and likewise of advisories.
    pub max_findings: Option<u32>,
}

/// The output for a document, or the verdict on it, or the failure.
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct Made {
    /// The failure as JSON.
    pub error: Option<String>,
    /// The text.
    pub text: Option<String>,
    /// JSON of the outcome; see [`verdict`].
    pub verdict: Option<String>,
    /// Why there is no text, on one line.
    pub summary: Option<String>,
}

/// The verdict, as JSON, or the failure.
pub(crate) type Judged = Either<String, Made>;

/// The bytes of a document, or why they cannot be read.
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct Document {
    /// The failure as JSON.
    pub error: Option<String>,
    /// The bytes.
    pub bytes: Option<Uint8Array>,
}

impl PromiseValue for Document {
    fn failed(error: String) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

fn read(path: &str, max_bytes: usize) -> Result<Document, Error> {
    let read = Source::File(path.into()).read(max_bytes);
    let failed = |error: io::Error| Error::new(ErrorKind::Io, format!("{path}: {error}")).with_source(error);
    let bytes = read.map_err(failed)?;
    Ok(Document { bytes: Some(Uint8Array::new(bytes)), ..Document::default() })
}

/// Whether bytes are a blank line.
#[napi]
pub(crate) fn is_blank_line(line: &[u8]) -> bool {
    gatewright::report::is_blank_line(line)
}

/// A validator, made once and used for many documents.
#[napi(js_name = "EngineValidator")]
pub struct Validator {
    pub(crate) validator: Core,
}

#[napi]
impl Validator {
    /// Creates a validator with these options, or returns as JSON why that fails.
    #[napi]
    pub fn create(options: ValidatorOptions) -> Either<Validator, String> {
        match gatewright::contain(|| Ok(Self::with(options))) {
            Ok(validator) => Either::A(validator),
            Err(broke) => Either::B(describe(&broke)),
        }
    }

    /// The document in a file; of a file over the limit, just enough to refuse it.
    #[napi]
    pub fn read(&self, path: String) -> Document {
        let read = gatewright::contain(|| read(&path, self.validator.max_bytes()));
        read.unwrap_or_else(|error| Document::failed(describe(&error)))
    }

    /// Like `read`, on a thread that may block. Never rejects.
    #[napi]
    pub fn read_later<'env>(&self, env: &'env Env, path: String) -> napi::Result<PromiseRaw<'env, Document>> {
        let max_bytes = self.validator.max_bytes();
        lifetime::spawn_blocking(env, move || read(&path, max_bytes))
    }

    /// The verdict on a document; nothing if it is clean.
    #[napi]
    pub fn validate(&self, document: &[u8]) -> Option<Judged> {
        judged(|| self.validator.check(document))
    }

    /// The page of a document. evidence: folder with the check kit's evidence; page: where the page will be, for links;
    /// protocols: the additional checks beside a report.
    #[napi]
    pub fn html(
        &self,
        document: &[u8],
        evidence: Option<String>,
        page: Option<String>,
        protocols: Option<Uint8Array>,
    ) -> Made {
        made(|| {
            let evidence = match evidence {
                Some(folder) => EvidenceFile::read_folder(Path::new(&folder), page.as_deref().map(Path::new))
                    .map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?,
                None => Vec::new(),
            };
            Ok(text(self.validator.html(document, &evidence, protocols.as_deref())))
        })
    }

    /// JUnit XML.
    #[napi]
    pub fn junit(&self, document: &[u8]) -> Made {
        made(|| Ok(text(self.validator.read(document).map(|report| junit(&report)))))
    }

    /// The failed checks as a SARIF log. path: the name of the document in it.
    #[napi]
    pub fn sarif(&self, document: &[u8], path: String) -> Made {
        made(|| Ok(text(self.validator.sarif(document, &path))))
    }

    /// Workflow commands of GitHub Actions for the failed checks.
    #[napi]
    pub fn annotations(&self, document: &[u8]) -> Made {
        made(|| Ok(text(self.validator.annotations(document))))
    }

    /// The canonical form.
    #[napi]
    pub fn canonical(&self, document: &[u8]) -> Made {
        made(|| Ok(text(self.validator.canonical(document))))
    }

    /// The comparison of two reports: JSON text, or a page.
    #[napi]
    pub fn diff(&self, old: &[u8], new: &[u8], percent: Option<u32>, ms: Option<u32>, as_html: bool) -> Made {
        let Thresholds { percent: usual_percent, ms: usual_ms } = Thresholds::default();
        let thresholds = Thresholds {
            percent: percent.map_or(usual_percent, Into::into),
            ms: ms.map_or(usual_ms, Into::into),
        };
        let compare = || {
            let (old, new) = (self.validator.read(old)?, self.validator.read(new)?);
            let diff = Diff::of(&old, &new, thresholds);
            Ok(if as_html { diff.to_html() } else { diff.to_json() })
        };
        made(|| Ok(text(compare())))
    }
}

impl Validator {
    fn with(options: ValidatorOptions) -> Self {
        let mut builder = Core::builder()
            .strict(options.strict.unwrap_or_default())
            .own_names(options.own_names.unwrap_or_default());
        if let Some(models) = options.models {
            builder = builder.models(models);
        }
        if let Some(kit_name) = options.kit_name {
            builder = builder.kit_name(kit_name);
        }
        if let Some(max_bytes) = options.max_bytes {
            builder = builder.max_bytes(max_bytes as usize);
        }
        if let Some(max_findings) = options.max_findings {
            builder = builder.max_findings(max_findings as usize);
        }
        Self { validator: builder.build() }
    }
}

/// The outcome of the work, which may be a failure or a panic.
fn made(work: impl FnOnce() -> Result<Made, Error>) -> Made {
    contained(work).unwrap_or_else(|error| Made::failed(&error))
}

/// The verdict, or the panic of the work; nothing for a clean document, so that JavaScript need not create anything
/// for it.
pub(crate) fn judged(work: impl FnOnce() -> Outcome) -> Option<Judged> {
    let judged = contained(|| {
        let outcome = work();
        Ok((!outcome.is_clean()).then(|| Either::A(verdict(&outcome))))
    });
    judged.unwrap_or_else(|error| Some(Either::B(Made::failed(&error))))
}

fn contained<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    gatewright::contain(|| {
        #[cfg(debug_assertions)]
        gatewright::on_purpose::reach(gatewright::on_purpose::PanicPoint::Report);
        work()
    })
}

impl Made {
    pub(crate) fn failed(error: &Error) -> Self {
        Self { error: Some(describe(error)), ..Self::default() }
    }
}

fn text(text: Result<String, Box<Outcome>>) -> Made {
    match text {
        Ok(text) => Made { text: Some(text), ..Made::default() },
        Err(outcome) => {
            Made { summary: Some(outcome.summary()), verdict: Some(verdict(&outcome)), ..Made::default() }
        }
    }
}

/// The outcome as JSON: a list of its members, with a list of members for each finding. Names would double what
/// JavaScript has to parse.
fn verdict(outcome: &Outcome) -> String {
    let Outcome { valid, violations, advisories, more_violations, more_advisories, .. } = outcome;
    let lists = (Findings(violations), Findings(advisories));
    let verdict = (valid, lists.0, lists.1, more_violations, more_advisories);
    let mut json = Vec::with_capacity(64 + USUAL_FINDING * (violations.len() + advisories.len()));
    serde_json::to_writer(&mut json, &verdict).expect("strings and numbers serialise");
    String::from_utf8(json).expect("JSON is text")
}

/// Capacity reserved per finding, in bytes: most need less.
const USUAL_FINDING: usize = 256;

struct Findings<'a>(&'a [Violation]);

impl Serialize for Findings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|finding| {
            let Violation {
                pointer, line, column, rule, property, expected, found, message, section, ..
            } = finding;
            (pointer, line, column, rule, property, expected, found, message, section)
        }))
    }
}
