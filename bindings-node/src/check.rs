//! The check kit: a run in progress, polled for its events.

#![expect(clippy::needless_pass_by_value, reason = "texts arrive owned")]

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gatewright::report::ProtocolReport;
use gatewright::whole_file::write_file;
use gatewright::{Error, ErrorKind};
use gatewright_checkkit::{
    ApiKey, BackgroundRun, CheckKit, Next, Options, RunResult, write_evidence, write_protocols,
};
use napi::Env;
use napi::bindgen_prelude::{Either, PromiseRaw};
use napi_derive::napi;

use crate::error::{describe, misconfigured};
use crate::lifetime::{PromiseValue, spawn_blocking};

/// Timeout of one poll for an event; JavaScript then polls again.
const WAIT: Duration = Duration::from_secs(1);

/// The result of waiting for an event.
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

/// The result of a run.
#[napi(object, object_from_js = false)]
pub struct CheckResult {
    /// The report in canonical form.
    pub report: String,
    /// The additional checks, if there are any.
    pub protocols: Option<String>,
    /// JSON array.
    pub evidence: String,
    /// Whether the run was cancelled.
    pub interrupted: bool,
}

/// The result of writing.
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct Written {
    /// The failure as JSON.
    pub error: Option<String>,
    /// Names of the files in the folder.
    pub names: Vec<String>,
}

impl PromiseValue for CheckStep {
    fn failed(error: String) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

impl PromiseValue for Written {
    fn failed(error: String) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

/// A run on its own threads. Dropping it cancels it.
#[napi(js_name = "EngineCheckRun")]
pub struct CheckRun {
    run: Arc<BackgroundRun>,
}

#[napi]
impl CheckRun {
    /// Starts a run, or returns as JSON why the kit refuses. options: those of the kit as a JSON object.
    #[napi]
    pub fn create(options: String, api_key: String) -> Either<CheckRun, String> {
        match gatewright::contain(|| begin(&options, &api_key).map_err(misconfigured)) {
            Ok(run) => Either::A(CheckRun { run: Arc::new(run) }),
            Err(error) => Either::B(describe(&error)),
        }
    }

    /// The next event, if one arrives within a second. Never rejects.
    #[napi]
    pub fn next<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, CheckStep>> {
        let run = Arc::clone(&self.run);
        spawn_blocking(env, move || {
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

    /// Ends the run early; the report is still complete.
    #[napi]
    pub fn cancel(&self) {
        self.run.cancel();
    }

    /// The result of the run, once it is done, or the failure as JSON.
    #[napi]
    pub fn result(&self) -> Either<CheckResult, String> {
        let result = gatewright::contain(|| {
            Ok(finished(&self.run).map(|finished| {
                let evidence: Vec<_> = finished.evidence.iter().map(|(_, evidence)| evidence).collect();
                CheckResult {
                    report: finished.report.to_json(),
                    protocols: finished.protocols.as_ref().map(ProtocolReport::to_json),
                    evidence: serde_json::to_string(&evidence).expect("strings serialise"),
                    interrupted: finished.interrupted,
                }
            }))
        });
        match result {
            Ok(Ok(result)) => Either::A(result),
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

    /// Writes the additional checks, whole or not at all. Never rejects.
    #[napi]
    pub fn write_protocols<'env>(
        &self,
        env: &'env Env,
        path: String,
    ) -> napi::Result<PromiseRaw<'env, Written>> {
        write(env, &self.run, path, |finished, path| {
            write_protocols(path, finished.protocols.as_ref()).map(|()| Vec::new())
        })
    }

    /// Writes one file per piece of evidence, and returns their names. Never rejects.
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
    write: impl FnOnce(&RunResult, &Path) -> io::Result<Vec<String>> + Send + 'static,
) -> napi::Result<PromiseRaw<'env, Written>> {
    let run = Arc::clone(run);
    spawn_blocking(env, move || {
        #[cfg(debug_assertions)]
        gatewright::on_purpose::reach(gatewright::on_purpose::PanicPoint::Check);
        let finished = match finished(&run) {
            Ok(finished) => finished,
            Err(failure) => return Ok(Written::failed(failure)),
        };
        let names = write(finished, Path::new(&place))
            .map_err(|error| Error::new(ErrorKind::Io, format!("cannot write {place}: {error}")))?;
        Ok(Written { names, ..Written::default() })
    })
}

fn begin(options: &str, api_key: &str) -> Result<BackgroundRun, String> {
    let key = ApiKey::trimmed(api_key).map_err(|error| error.to_string())?;
    let options = Options::read(options).map_err(|refused| refused.to_string())?;
    let kit = CheckKit::new(options, &key).map_err(|refused| refused.to_string())?;
    BackgroundRun::start(kit).map_err(|error| format!("no thread for the run: {error}"))
}

/// The result of the run, or the failure as JSON.
fn finished(run: &BackgroundRun) -> Result<&RunResult, String> {
    match run.finished() {
        Some(finished) => finished.map_err(describe),
        None => Err(describe(&misconfigured("the run has not finished".to_owned()))),
    }
}
