//! The check kit: a run under way, asked for its events.

#![expect(clippy::needless_pass_by_value, reason = "texts arrive owned")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gatewright_checkkit::{
    ApiKey, BackgroundRun, CheckKit, Finished, Next, Options, write_evidence, write_file,
};
use napi::bindgen_prelude::{Either, PromiseRaw};
use napi::{Env, Error, Result};
use napi_derive::napi;

/// How long one question for an event waits before JavaScript asks again.
const WAIT: Duration = Duration::from_secs(1);

/// What came of waiting for an event.
#[napi(object, object_from_js = false)]
pub struct CheckStep {
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

/// A run on its own threads. Dropping it cancels it.
#[napi(js_name = "NativeCheckRun")]
pub struct CheckRun {
    run: Arc<BackgroundRun>,
}

#[napi]
impl CheckRun {
    /// Begins a run, or tells why the kit refuses. options: those of the kit as a JSON object.
    #[napi(catch_unwind)]
    pub fn create(options: String, api_key: String) -> Either<CheckRun, String> {
        match begin(&options, &api_key) {
            Ok(run) => Either::A(CheckRun { run: Arc::new(run) }),
            Err(problem) => Either::B(problem),
        }
    }

    /// The next event, if one comes within a second.
    #[napi]
    pub fn next<'env>(&self, env: &'env Env) -> Result<PromiseRaw<'env, CheckStep>> {
        let run = Arc::clone(&self.run);
        env.spawn_future(async move {
            let next = tokio::task::spawn_blocking(move || run.next(WAIT)).await;
            match next.map_err(|error| Error::from_reason(error.to_string()))? {
                Next::Event(event) => {
                    let event = serde_json::to_string(&event).expect("strings and numbers serialise");
                    Ok(CheckStep { done: false, event: Some(event) })
                }
                Next::Pending => Ok(CheckStep { done: false, event: None }),
                Next::Done => Ok(CheckStep { done: true, event: None }),
            }
        })
    }

    /// Ends the run early; the report is whole all the same.
    #[napi]
    pub fn cancel(&self) {
        self.run.cancel();
    }

    /// What the run left behind, once it is done.
    #[napi(catch_unwind)]
    pub fn outcome(&self) -> Result<CheckOutcome> {
        let finished = finished(&self.run)?;
        let evidence: Vec<_> = finished.evidence.iter().map(|(_, evidence)| evidence).collect();
        Ok(CheckOutcome {
            report: finished.report.to_json(),
            evidence: serde_json::to_string(&evidence).expect("strings serialise"),
            interrupted: finished.interrupted,
        })
    }

    /// Writes the report, whole or not at all.
    #[napi]
    pub fn write_report<'env>(&self, env: &'env Env, path: String) -> Result<PromiseRaw<'env, ()>> {
        let run = Arc::clone(&self.run);
        let write = move || {
            write_file(Path::new(&path), finished(&run)?.report.to_json().as_bytes())
                .map_err(|error| unwritable(&path, &error))
        };
        env.spawn_future(async move {
            tokio::task::spawn_blocking(write).await.map_err(|error| Error::from_reason(error.to_string()))?
        })
    }

    /// Writes one file per piece of evidence, and gives their names.
    #[napi]
    pub fn write_evidence<'env>(
        &self,
        env: &'env Env,
        folder: String,
    ) -> Result<PromiseRaw<'env, Vec<String>>> {
        let run = Arc::clone(&self.run);
        let write = move || {
            write_evidence(Path::new(&folder), &finished(&run)?.evidence)
                .map_err(|error| unwritable(&folder, &error))
        };
        env.spawn_future(async move {
            tokio::task::spawn_blocking(write).await.map_err(|error| Error::from_reason(error.to_string()))?
        })
    }
}

fn begin(options: &str, api_key: &str) -> std::result::Result<BackgroundRun, String> {
    let key = ApiKey::new(api_key)?;
    let options = Options::read(options).map_err(|refused| refused.to_string())?;
    let kit = CheckKit::new(options, &key).map_err(|refused| refused.to_string())?;
    BackgroundRun::start(kit).map_err(|error| format!("no thread for the run: {error}"))
}

fn finished(run: &BackgroundRun) -> Result<&Finished> {
    run.finished().ok_or_else(|| Error::from_reason("the run is not done, or the check kit broke"))
}

fn unwritable(place: &str, error: &std::io::Error) -> Error {
    Error::from_reason(format!("cannot write {place}: {error}"))
}
