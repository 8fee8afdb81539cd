//! The check kit: a run under way, asked for its events.

#![expect(clippy::needless_pass_by_value, reason = "texts arrive owned")]

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gatewright::{Error, ErrorKind};
use gatewright_checkkit::{
    ApiKey, BackgroundRun, CheckKit, Finished, Next, Options, write_evidence, write_file,
};
use napi::Env;
use napi::bindgen_prelude::{Either, PromiseRaw};
use napi_derive::napi;

use crate::error::{cancelled, describe, misconfigured};
use crate::lifetime::{self, Outcome};

/// How long one question for an event waits before JavaScript asks again.
const WAIT: Duration = Duration::from_secs(1);

/// What came of waiting for an event.
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct CheckStep {
    /// The failure as JSON.
    pub error: Option<String>,
    /// Whether the run is over.
    pub done: bool,
    /// The event as JSON, if one came.
    pub event: Option<String>,
}

/// What a run left behind.
#[napi(object, object_from_js = false)]
pub struct CheckOutcome {
    /// The report in canonical form.
    pub report: String,
    /// JSON array.
    pub evidence: String,
    /// Whether the run was cut short.
    pub interrupted: bool,
}

/// What came of writing.
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct Written {
    /// The failure as JSON.
    pub error: Option<String>,
    /// Names of the files in the folder.
    pub names: Vec<String>,
}

impl Outcome for CheckStep {
    fn failed(error: String) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

impl Outcome for Written {
    fn failed(error: String) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

/// A run on its own threads. Dropping it cancels it.
#[napi(js_name = "NativeCheckRun")]
pub struct CheckRun {
    run: Arc<BackgroundRun>,
}

#[napi]
impl CheckRun {
    /// Begins a run, or tells as JSON why the kit refuses. options: those of the kit as a JSON object.
    #[napi]
    pub fn create(options: String, api_key: String) -> Either<CheckRun, String> {
        match gatewright::contain(|| begin(&options, &api_key).map_err(misconfigured)) {
            Ok(run) => Either::A(CheckRun { run: Arc::new(run) }),
            Err(error) => Either::B(describe(&error)),
        }
    }

    /// The next event, if one comes within a second. Never rejects.
    #[napi]
    pub fn next<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, CheckStep>> {
        let run = Arc::clone(&self.run);
        blocking(env, move || {
            Ok(match run.next(WAIT) {
                Next::Event(event) => {
                    let event = serde_json::to_string(&event).expect("strings and numbers serialise");
                    CheckStep { event: Some(event), ..CheckStep::default() }
                }
                Next::Pending => CheckStep::default(),
                Next::Done => CheckStep { done: true, ..CheckStep::default() },
            })
        })
    }

    /// Ends the run early; the report is whole all the same.
    #[napi]
    pub fn cancel(&self) {
        self.run.cancel();
    }

    /// What the run left behind, once it is done, or the failure as JSON.
    #[napi]
    pub fn outcome(&self) -> Either<CheckOutcome, String> {
        let outcome = gatewright::contain(|| {
            Ok(finished(&self.run).map(|finished| {
                let evidence: Vec<_> = finished.evidence.iter().map(|(_, evidence)| evidence).collect();
                CheckOutcome {
                    report: finished.report.to_json(),
                    evidence: serde_json::to_string(&evidence).expect("strings serialise"),
                    interrupted: finished.interrupted,
                }
            }))
        });
        match outcome {
            Ok(Ok(outcome)) => Either::A(outcome),
            Ok(Err(failure)) => Either::B(failure),
            Err(broke) => Either::B(describe(&broke)),
        }
    }

    /// Writes the report, whole or not at all. Never rejects.
    #[napi]
    pub fn write_report<'env>(
        &self,
        env: &'env Env,
        path: String,
    ) -> napi::Result<PromiseRaw<'env, Written>> {
        write(env, &self.run, path, |finished, path| {
            write_file(path, finished.report.to_json().as_bytes()).map(|()| Vec::new())
        })
    }

    /// Writes one file per piece of evidence, and gives their names. Never rejects.
    #[napi]
    pub fn write_evidence<'env>(
        &self,
        env: &'env Env,
        folder: String,
    ) -> napi::Result<PromiseRaw<'env, Written>> {
        write(env, &self.run, folder, |finished, folder| write_evidence(folder, &finished.evidence))
    }
}

fn write<'env>(
    env: &'env Env,
    run: &Arc<BackgroundRun>,
    place: String,
    write: impl FnOnce(&Finished, &Path) -> io::Result<Vec<String>> + Send + 'static,
) -> napi::Result<PromiseRaw<'env, Written>> {
    let run = Arc::clone(run);
    blocking(env, move || {
        #[cfg(debug_assertions)]
        gatewright::on_purpose::reach(gatewright::on_purpose::Place::Check);
        let finished = match finished(&run) {
            Ok(finished) => finished,
            Err(failure) => return Ok(Written::failed(failure)),
        };
        let names = write(finished, Path::new(&place))
            .map_err(|error| Error::new(ErrorKind::Io, format!("cannot write {place}: {error}")))?;
        Ok(Written { names, ..Written::default() })
    })
}

/// Work that blocks, on a thread that may be. A panic of it is its failure, without the panic's message.
fn blocking<T: Outcome + Send + napi::bindgen_prelude::ToNapiValue + 'static>(
    env: &Env,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> napi::Result<PromiseRaw<'_, T>> {
    lifetime::spawn(env, async move {
        let done = tokio::task::spawn_blocking(move || gatewright::contain(work)).await;
        // What is left is that the runtime ends.
        done.unwrap_or_else(|_| Err(cancelled("the process ends")))
    })
}

fn begin(options: &str, api_key: &str) -> Result<BackgroundRun, String> {
    let key = ApiKey::new(api_key)?;
    let options = Options::read(options).map_err(|refused| refused.to_string())?;
    let kit = CheckKit::new(options, &key).map_err(|refused| refused.to_string())?;
    BackgroundRun::start(kit).map_err(|error| format!("no thread for the run: {error}"))
}

/// What the run left behind, or the failure as JSON.
fn finished(run: &BackgroundRun) -> Result<&Finished, String> {
    match run.finished() {
        Some(finished) => finished.map_err(describe),
        None => Err(describe(&misconfigured("the run is not done".to_owned()))),
    }
}
