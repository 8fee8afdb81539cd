//! Follows a batch at its upstream to its end: only then its usage is known. A batch whose process has died is followed by another one.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright_protocol::conversation::{Protocol, Usage};
use gatewright_protocol::lazy_json::members;
use gatewright_store::{ObjectKind, ObjectLease};
use gatewright_system::clock::unix_seconds;
use http::{HeaderMap, Method};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::{read, request};
use crate::app::App;
use crate::bounds::memory_budget::Reservation;
use crate::relay::{self, ObjectFailure};
use crate::routing::Provider;
use crate::storage::{MAX_RECORD_BYTES, ObjectRecord};
use crate::usage::{Caller, Charge};
use crate::wire::ApiError;

/// Longest pause between two requests for a batch.
const MAX_PAUSE: Duration = Duration::from_mins(1);
/// How often a pause checks whether the gateway is stopping.
const TICK: Duration = Duration::from_secs(1);
/// How often in a row an upstream may report that it has no such batch.
const MAX_REFUSALS: u32 = 3;
/// How often its results are read for its usage, which is estimated afterwards.
const MAX_READS: u32 = 10;
/// How long a batch is followed: providers end it within days.
const MAX_TIME: Duration = Duration::from_hours(14 * 24);
/// The states after which nothing changes.
const ENDS: [&str; 4] = ["completed", "failed", "expired", "cancelled"];

/// A batch in progress at an upstream.
pub(super) struct FollowedBatch {
    pub(super) provider: Arc<Provider>,
    pub(super) record: ObjectRecord,
    pub(super) lease: ObjectLease,
    pub(super) caller: Caller,
    pub(super) charge: Charge,
}

/// How long no other process follows a batch whose upstream is asked next after this pause.
pub(super) fn lease(app: &App, pause: Duration) -> Duration {
    2 * pause + app.config.video_lease
}

/// Whether a batch has ended.
pub(super) fn has_ended(document: &Value) -> bool {
    document["status"].as_str().is_some_and(|status| ENDS.contains(&status))
}

/// Follows a batch until it ends, or until the gateway stops.
pub(super) fn start(app: &Arc<App>, batch: FollowedBatch) {
    let worker = Arc::clone(app);
    app.task_runner.spawn(async move { batch.run(&worker).await });
}

impl FollowedBatch {
    async fn run(mut self, app: &App) {
        let (mut pause, started) = (app.config.batch_poll, Instant::now());
        let (mut refusals, mut reads) = (0, 0);
        loop {
            if !self.wait(app, pause).await {
                return;
            }
            pause = pause.mul_f64(1.5).min(MAX_PAUSE);
            let is_late = started.elapsed() > MAX_TIME;
            match self.look_up(app).await {
                Ok(document) => {
                    refusals = 0;
                    self.record.document = document;
                }
                Err(ObjectFailure::Unknown(_)) => refusals += 1,
                Err(ObjectFailure::Failed(error)) => {
                    tracing::warn!(
                        upstream = self.record.upstream,
                        code = error.code().code,
                        "looking up a batch failed"
                    );
                }
            }
            if has_ended(&self.record.document) || refusals == MAX_REFUSALS || is_late {
                reads += 1;
                match self.usage(app).await {
                    Ok(usage) => return self.end(app, usage).await,
                    // Its results state the usage: they are worth another look.
                    Err(ObjectFailure::Failed(_)) if reads < MAX_READS => {}
                    Err(_) => return self.end(app, None).await,
                }
            }
            match app.storage.objects.update(&self.lease, &self.record, Some(lease(app, pause))).await {
                Ok(true) => {}
                // It was taken over.
                Ok(false) => return,
                Err(error) => tracing::warn!("{error}: another gateway may take over a batch"),
            }
        }
    }

    /// Waits. False: the gateway is stopping, and another process may follow the batch.
    async fn wait(&self, app: &App, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        while Instant::now() < until {
            if app.draining.load(Ordering::Relaxed) {
                _ = app.storage.objects.update(&self.lease, &self.record, Some(Duration::ZERO)).await;
                return false;
            }
            tokio::time::sleep(TICK.min(until - Instant::now())).await;
        }
        true
    }

    async fn look_up(&self, app: &App) -> Result<Value, ObjectFailure> {
        let provider = app.live.routes.load().current(&self.provider);
        let path = ["batches", self.record.id()];
        let (document, _share) =
            fetch(app, &provider, &self.caller, &self.record, &path, MAX_RECORD_BYTES).await?;
        let document = read(&document).filter(|document| document["id"] == self.lease.id.as_str());
        let document = document.ok_or_else(|| {
            ObjectFailure::Failed(ApiError::new(
                &ErrorCode::SERVER_ERROR,
                "the provider answered with another batch",
            ))
        })?;
        let owner = self.caller.id();
        if let Err(error) = adopt_results(app, &provider, owner, &self.record, &document).await {
            // Retrieving the batch adds them; its usage must not wait for that.
            tracing::warn!(code = error.code().code, "the results of a batch are not listed yet");
        }
        Ok(document)
    }

    /// Records its end, then its usage; `None`: the most that it may have used. A batch that another process has ended counts there.
    async fn end(mut self, app: &App, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.charge.set_usage(usage);
        }
        let counts = &self.record.document["request_counts"];
        let count = |name: &str| counts[name].as_u64().unwrap_or_default();
        self.charge.set_requests(count("completed"), count("failed"));
        loop {
            match app.storage.objects.update(&self.lease, &self.record, None).await {
                Ok(true) => return self.charge.complete(),
                Ok(false) => return,
                Err(error) => tracing::warn!("{error}: the end of a batch is not stored yet"),
            }
            if !self.wait(app, TICK).await {
                return;
            }
        }
    }

    /// Its tokens, as the upstream states them: for the batch, or for each of its results. Errors: the results can't be read.
    async fn usage(&self, app: &App) -> Result<Option<Usage>, ObjectFailure> {
        let document = &self.record.document;
        let stated = &document["usage"];
        if stated["input_tokens"].is_u64() {
            let stated = RawValue::from_string(stated.to_string()).ok();
            return Ok(stated.and_then(|stated| Protocol::Responses.usage_in(&stated, Usage::default())));
        }
        let Some(id) = document["output_file_id"].as_str() else {
            // Nothing was processed.
            let nothing = Usage { input: Some(0), output: Some(0), ..Usage::default() };
            return Ok(has_ended(document).then_some(nothing));
        };
        let is_responses = document["endpoint"] == "/v1/responses";
        let protocol = if is_responses { Protocol::Responses } else { Protocol::Chat };
        let path = ["files", id, "content"];
        let most = relay::MAX_DOCUMENT_BYTES;
        let (results, _share) = fetch(app, &self.provider, &self.caller, &self.record, &path, most).await?;
        Ok(std::str::from_utf8(&results).ok().map(|results| usage_of_results(results, protocol)))
    }
}

/// Fetches something of a batch from its upstream for the gateway itself. Returns it with the memory that it takes.
async fn fetch(
    app: &App,
    provider: &Provider,
    caller: &Caller,
    record: &ObjectRecord,
    path: &[&str],
    most: usize,
) -> Result<(Bytes, Reservation), ObjectFailure> {
    let (headers, id) = (HeaderMap::new(), format!("req_{}", Uuid::new_v4().simple()));
    let about = request(Method::GET, path, &headers, &id);
    let mut share = app.share_of(caller);
    let answer = relay::ask_about_object(&provider.endpoint, record.key, about, most, &mut share).await?;
    Ok((answer, share))
}

/// The tokens of all results of a batch.
fn usage_of_results(results: &str, protocol: Protocol) -> Usage {
    #[derive(Deserialize)]
    struct ResultLine<'r> {
        #[serde(borrow)]
        response: Option<ResultResponse<'r>>,
    }
    #[derive(Deserialize)]
    struct ResultResponse<'r> {
        #[serde(borrow)]
        body: &'r RawValue,
    }
    let mut sum = Usage { input: Some(0), output: Some(0), ..Usage::default() };
    for line in results.lines() {
        let Ok(ResultLine { response: Some(response) }) = serde_json::from_str(line) else { continue };
        let mut stated = None;
        _ = members(response.body.get(), |name, value| {
            if name == "usage" {
                stated = protocol.usage_in(value, Usage::default());
            }
        });
        let Some(usage) = stated else { continue };
        let add = |sum: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0).saturating_add(more));
            }
        };
        add(&mut sum.input, usage.input);
        add(&mut sum.output, usage.output);
        add(&mut sum.cached, usage.cached);
        add(&mut sum.cache_write, usage.cache_write);
        add(&mut sum.reasoning, usage.reasoning);
    }
    sum
}

/// Makes the results of a batch files of its key. Errors: the store doesn't answer, or has no room for them.
pub(super) async fn adopt_results(
    app: &App,
    provider: &Provider,
    owner: &Arc<str>,
    batch: &ObjectRecord,
    document: &Value,
) -> Result<(), ApiError> {
    for name in ["output_file_id", "error_file_id"] {
        let Some(id) = document[name].as_str().filter(|id| id.len() <= super::MAX_ID_BYTES) else { continue };
        if app.storage.objects.find(owner, ObjectKind::File, id).await?.is_some() {
            continue;
        }
        let (headers, request_id) = (HeaderMap::new(), format!("req_{}", Uuid::new_v4().simple()));
        let path = ["files", id];
        let about = request(Method::GET, &path, &headers, &request_id);
        let mut share = app.resources.memory.share();
        let asking =
            relay::ask_about_object(&provider.endpoint, batch.key, about, MAX_RECORD_BYTES, &mut share);
        let described = asking.await.ok().and_then(|document| read(&document));
        // Its own description can be read again at any time.
        let described = described.filter(|described| described["id"] == id).unwrap_or_else(|| {
            json!({
                "id": id, "object": "file", "bytes": 0, "created_at": unix_seconds(), "filename": format!("{id}.jsonl"),
                "purpose": "batch_output",
            })
        });
        let record = ObjectRecord {
            document: described,
            upstream: batch.upstream.clone(),
            key: batch.key,
            requests: None,
            content: None,
        };
        app.storage.objects.add(owner, ObjectKind::File, &record, None, None, 100).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_of_results_is_the_sum_of_those_that_state_one() {
        let results = r#"{"custom_id":"a","response":{"status_code":200,"body":{"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3}}}}}
{"custom_id":"b","response":{"status_code":200,"body":{"usage":{"prompt_tokens":7,"completion_tokens":1}}}}
{"custom_id":"c","response":null,"error":{"code":"x"}}
{"custom_id":"d","response":{"status_code":200,"body":{}}}
not JSON
"#;
        let usage = usage_of_results(results, Protocol::Chat);
        assert_eq!((usage.input, usage.output, usage.cached), (Some(12), Some(3), Some(3)));
    }
}
