//! Reports: bytes in, the core's verdicts out as JSON, pages and other forms as text.

#![expect(clippy::needless_pass_by_value, reason = "napi hands arguments over by value")]

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use gatewright::report::{
    Diff, EvidenceFile, Outcome, Report, Thresholds, Validator as Core, annotations, html, junit,
};
use gatewright::{Error, ErrorKind};
use napi::bindgen_prelude::{AsyncTask, Either};
use napi::{Env, Task};
use napi_derive::napi;

use crate::error::describe;

/// How documents are judged; what is missing is as in the specification.
#[napi(object, object_to_js = false)]
pub struct ValidatorOptions {
    /// Whether advisories count.
    pub strict: Option<bool>,
    /// Model ids in place of the tested ones.
    pub models: Option<Vec<String>>,
    /// Name of the kit in place of the standard one.
    pub kit_name: Option<String>,
    /// Largest document to read, in bytes.
    pub max_bytes: Option<u32>,
    /// Most violations, and most advisories, that a verdict lists.
    pub max_findings: Option<u32>,
}

/// What was made of a document, or the verdict on it, or the failure.
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct Made {
    /// The failure as JSON.
    pub error: Option<String>,
    /// The text.
    pub text: Option<String>,
    /// JSON of the outcome.
    pub verdict: Option<String>,
    /// Why there is no text, on one line.
    pub summary: Option<String>,
}

/// A validator, made once and used for many documents.
#[napi(js_name = "NativeValidator")]
pub struct Validator {
    validator: Core,
}

#[napi]
impl Validator {
    /// Makes a validator with these options, or tells as JSON why it cannot be made.
    #[napi]
    pub fn create(options: ValidatorOptions) -> Either<Validator, String> {
        match gatewright::contain(|| Ok(Self::with(options))) {
            Ok(validator) => Either::A(validator),
            Err(broke) => Either::B(describe(&broke)),
        }
    }

    /// Largest document that is read, in bytes.
    #[napi(getter)]
    pub fn max_bytes(&self) -> f64 {
        // Below 2^32: exact.
        u32::try_from(self.validator.max_bytes()).unwrap_or(u32::MAX).into()
    }

    /// The verdict on a document.
    #[napi]
    pub fn validate(&self, document: &[u8]) -> Made {
        made(|| Ok(verdict(&self.validator.check(document))))
    }

    /// As `validate`, on another thread.
    #[napi]
    pub fn judge(&self, document: &[u8]) -> AsyncTask<Judging> {
        // Copied: JavaScript may write to the bytes while the other thread reads.
        let source = Source::Bytes(document.to_vec());
        AsyncTask::new(Judging { validator: self.validator.clone(), source })
    }

    /// As `judge`, of a file, which is read there too, no more of it than the bound asks for.
    #[napi]
    pub fn judge_file(&self, path: String) -> AsyncTask<Judging> {
        AsyncTask::new(Judging { validator: self.validator.clone(), source: Source::File(path.into()) })
    }

    /// The page of a report. evidence: folder with the check kit's evidence; page: where the page will be, for links.
    #[napi]
    pub fn html(&self, document: &[u8], evidence: Option<String>, page: Option<String>) -> Made {
        made(|| {
            let evidence = match evidence {
                Some(folder) => EvidenceFile::read_folder(Path::new(&folder), page.as_deref().map(Path::new))
                    .map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?,
                None => Vec::new(),
            };
            Ok(self.make(document, |report| html(report, &evidence)))
        })
    }

    /// JUnit XML.
    #[napi]
    pub fn junit(&self, document: &[u8]) -> Made {
        made(|| Ok(self.make(document, junit)))
    }

    /// Workflow commands of GitHub Actions for the failed checks.
    #[napi]
    pub fn annotations(&self, document: &[u8]) -> Made {
        made(|| Ok(self.make(document, annotations)))
    }

    /// The canonical form.
    #[napi]
    pub fn canonical(&self, document: &[u8]) -> Made {
        made(|| Ok(text(self.validator.canonical(document))))
    }

    /// The comparison of two reports: JSON text, or a page.
    #[napi]
    pub fn diff(&self, old: &[u8], new: &[u8], percent: u32, ms: u32, as_html: bool) -> Made {
        let compare = || {
            let (old, new) = (self.validator.read(old)?, self.validator.read(new)?);
            let diff = Diff::of(&old, &new, Thresholds { percent: percent.into(), ms: ms.into() });
            Ok(if as_html { diff.to_html() } else { diff.to_json() })
        };
        made(|| Ok(text(compare())))
    }
}

impl Validator {
    fn make(&self, document: &[u8], of: impl Fn(&Report) -> String) -> Made {
        text(self.validator.read(document).map(|report| of(&report)))
    }

    fn with(options: ValidatorOptions) -> Self {
        let mut builder = Core::builder().strict(options.strict.unwrap_or_default());
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

/// What came of the work; a failure, by a panic too, is one of the things that may.
fn made(work: impl FnOnce() -> Result<Made, Error>) -> Made {
    let made = gatewright::contain(|| {
        #[cfg(debug_assertions)]
        gatewright::on_purpose::reach(gatewright::on_purpose::Place::Report);
        work()
    });
    made.unwrap_or_else(|error| Made { error: Some(describe(&error)), ..Made::default() })
}

fn text(text: Result<String, Box<Outcome>>) -> Made {
    match text {
        Ok(text) => Made { text: Some(text), ..Made::default() },
        Err(outcome) => Made { summary: Some(outcome.summary()), ..verdict(&outcome) },
    }
}

fn verdict(outcome: &Outcome) -> Made {
    Made { verdict: Some(outcome.to_json()), ..Made::default() }
}

enum Source {
    Bytes(Vec<u8>),
    File(PathBuf),
}

/// A verdict in the making, on a thread of Node's pool.
pub struct Judging {
    validator: Core,
    source: Source,
}

impl Judging {
    fn verdict(&self) -> Result<Made, Error> {
        let outcome = match &self.source {
            Source::Bytes(document) => self.validator.check(document),
            Source::File(path) => {
                let mut document = Vec::new();
                let bound = self.validator.max_bytes() as u64 + 1;
                File::open(path)
                    .and_then(|file| file.take(bound).read_to_end(&mut document))
                    .map_err(|error| Error::new(ErrorKind::Io, format!("{}: {error}", path.display())))?;
                self.validator.check(&document)
            }
        };
        Ok(verdict(&outcome))
    }
}

impl Task for Judging {
    type Output = Made;
    type JsValue = Made;

    fn compute(&mut self) -> napi::Result<Made> {
        // A panic on that thread would take the process along.
        Ok(made(|| self.verdict()))
    }

    fn resolve(&mut self, _: Env, verdict: Made) -> napi::Result<Made> {
        Ok(verdict)
    }
}
