//! Batches of the simulator: the gateway sends the requests to itself, one after the other, and writes the results into files.

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use gatewright::ErrorCode;
use gatewright::operations::Operation;
use gatewright_store::{FileKind, ObjectKind, ObjectLease};
use gatewright_system::clock::unix_seconds;
use http::HeaderMap;
use http_body_util::{BodyExt as _, Limited};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{files, follow, lines};
use crate::app::App;
use crate::relay;
use crate::storage::{BatchRequests, LIFETIME, ObjectRecord};
use crate::usage::Caller;
use crate::wire::{ApiError, Call, Presence};

/// Maximum size of the results, and of the errors, in bytes.
const MAX_RESULT_BYTES: usize = 64 * 1024 * 1024;

/// Begins a batch. Errors: the content of its file is gone; the store doesn't answer.
pub(super) async fn begin(
    app: &Arc<App>,
    call: &Call,
    body: &Value,
    file: ObjectRecord,
    requests: BatchRequests,
) -> Result<Value, ApiError> {
    let now = unix_seconds();
    let document = json!({
        "id": format!("batch_{}", Uuid::new_v4().simple()),
        "object": "batch",
        "endpoint": requests.endpoint,
        "model": requests.model,
        "errors": null,
        "input_file_id": file.id(),
        "completion_window": body["completion_window"],
        "status": "in_progress",
        "output_file_id": null,
        "error_file_id": null,
        "created_at": now,
        "in_progress_at": now,
        "expires_at": now + 24 * 60 * 60,
        "request_counts": { "total": requests.count, "completed": 0, "failed": 0 },
        "metadata": body["metadata"],
    });
    let record = ObjectRecord {
        document,
        upstream: file.upstream,
        key: None,
        requests: Some(requests),
        content: file.content,
    };
    let (owner, percent) = (call.caller.id(), app.percent_of_key());
    let (expires, lease) = (Some(7 * 24 * LIFETIME), follow::lease(app, Duration::ZERO));
    let lease =
        app.storage.objects.add(owner, ObjectKind::Batch, &record, expires, Some(lease), percent).await?;
    let document = record.document.clone();
    start(app, call.caller.clone(), record, lease);
    Ok(document)
}

/// Runs a batch of a process that has died again, from its beginning.
pub(super) fn resume(app: &Arc<App>, caller: Caller, record: ObjectRecord, lease: ObjectLease) {
    start(app, caller, record, lease);
}

/// Cancels a batch; one that has ended stays as it is. Errors: another gateway runs it.
pub(super) fn cancel(app: &App, record: &ObjectRecord) -> Result<Value, ApiError> {
    if app.storage.objects.cancel(record.id()) {
        let mut document = record.document.clone();
        document["status"] = "cancelling".into();
        document["cancelling_at"] = unix_seconds().into();
        return Ok(document);
    }
    if follow::has_ended(&record.document) {
        return Ok(record.document.clone());
    }
    let message = "another gateway runs the batch: only that one can cancel it";
    Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param("batch_id"))
}

fn start(app: &Arc<App>, caller: Caller, record: ObjectRecord, lease: ObjectLease) {
    let worker = Arc::clone(app);
    let running = app.storage.objects.run(record.id());
    app.task_runner.spawn(async move {
        let batch = SimulatedBatch { app: &worker, caller, record, lease };
        tokio::select! {
            () = batch.run(&running.cancelled) => {}
            // Another process runs it again.
            () = worker.task_runner.stopped() => {}
        }
        drop(running);
    });
}

struct SimulatedBatch<'a> {
    app: &'a Arc<App>,
    caller: Caller,
    record: ObjectRecord,
    lease: ObjectLease,
}

/// Results so far, as the lines of a file.
#[derive(Default)]
struct Results {
    lines: Vec<u8>,
    count: u64,
}

impl Results {
    fn add(&mut self, line: &Value) {
        self.count += 1;
        if self.lines.len() < MAX_RESULT_BYTES {
            self.lines.extend_from_slice(line.to_string().as_bytes());
            self.lines.push(b'\n');
        }
    }
}

impl SimulatedBatch<'_> {
    async fn run(mut self, cancelled: &CancellationToken) {
        let (mut done, mut failed) = (Results::default(), Results::default());
        let outcome = self.process(cancelled, &mut done, &mut failed).await;
        let document = &mut self.record.document;
        document["request_counts"]["completed"] = done.count.into();
        document["request_counts"]["failed"] = failed.count.into();
        let (status, time) = match outcome {
            Ok(()) if cancelled.is_cancelled() => ("cancelled", "cancelled_at"),
            Ok(()) => ("completed", "completed_at"),
            Err(error) => {
                document["errors"] = failure(&error);
                ("failed", "failed_at")
            }
        };
        for (name, results) in [("output_file_id", done), ("error_file_id", failed)] {
            match self.kept(results.lines).await {
                Ok(id) => self.record.document[name] = id,
                Err(error) => self.record.document["errors"] = failure(&error),
            }
        }
        self.record.document["status"] = status.into();
        self.record.document[time] = unix_seconds().into();
        while let Err(error) = self.app.storage.objects.update(&self.lease, &self.record, None).await {
            tracing::warn!("{error}: the end of a batch is not stored yet");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn process(
        &mut self,
        cancelled: &CancellationToken,
        done: &mut Results,
        failed: &mut Results,
    ) -> Result<(), ApiError> {
        let file = self.input().await?;
        let lines = lines::read(&file)?;
        let (lease, mut renewed) = (follow::lease(self.app, Duration::ZERO), Instant::now());
        for line in &lines.requests {
            if cancelled.is_cancelled() {
                return Ok(());
            }
            if renewed.elapsed() > lease / 3 {
                renewed = Instant::now();
                let counts = &mut self.record.document["request_counts"];
                (counts["completed"], counts["failed"]) = (done.count.into(), failed.count.into());
                if let Ok(false) =
                    self.app.storage.objects.update(&self.lease, &self.record, Some(lease)).await
                {
                    cancelled.cancel();
                }
            }
            let id = format!("req_{}", Uuid::new_v4().simple());
            let body = Bytes::copy_from_slice(line.body.as_bytes());
            let (status, answer) = self.answer(lines.operation, &id, body).await;
            let result = json!({
                "id": format!("batch_{id}"),
                "custom_id": line.custom_id,
                "response": { "status_code": status, "request_id": id, "body": answer },
                "error": null,
            });
            if status < 400 { done.add(&result) } else { failed.add(&result) }
        }
        Ok(())
    }

    /// The content of its file.
    async fn input(&self) -> Result<Bytes, ApiError> {
        let gone = || ApiError::new(&ErrorCode::FILE_EXPIRED, "the file with the requests has expired");
        let content = self.record.content.as_ref().ok_or_else(gone)?;
        let file = self.app.storage.files.find(&content.name).await?.ok_or_else(gone)?;
        let pieces = file.read(0..file.bytes).await?;
        let pieces: Vec<Bytes> = pieces.try_collect().await.map_err(|_| gone())?;
        Ok(pieces.concat().into())
    }

    /// The status and the document that answer one request.
    async fn answer(&self, operation: &'static Operation, id: &str, body: Bytes) -> (u16, Value) {
        let call = Call {
            operation,
            path: Vec::new(),
            query: Vec::new(),
            headers: HeaderMap::new(),
            body,
            form: None,
            caller: self.caller.clone(),
            request_id: id.to_owned(),
            presence: Presence::default(),
            is_tls: false,
            started: Instant::now(),
            failed_at: OnceLock::new(),
            consumed: crate::usage::Consumed::default(),
        };
        let response = relay::answer(self.app, call).await;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), MAX_RESULT_BYTES).collect().await;
        let document = body.ok().and_then(|body| serde_json::from_slice(&body.to_bytes()).ok());
        (status, document.unwrap_or_default())
    }

    /// The id of a new file with results; null if there are none.
    async fn kept(&self, lines: Vec<u8>) -> Result<Value, ApiError> {
        if lines.is_empty() {
            return Ok(Value::Null);
        }
        let (owner, bytes) = (self.caller.id(), lines.len());
        let room = self.app.room_for_files(owner, bytes).await?;
        let content = room.keep(FileKind::Data, vec![lines], LIFETIME).await?.remove(0);
        let record =
            files::simulated(&self.record.upstream, "results.jsonl", &json!("batch_output"), bytes, content);
        let expires = Some(LIFETIME);
        self.app.storage.objects.add(owner, ObjectKind::File, &record, expires, None, 100).await?;
        Ok(record.document["id"].clone())
    }
}

/// An error as a batch states it.
fn failure(error: &ApiError) -> Value {
    json!({
        "object": "list",
        "data": [{ "code": error.code().code, "message": error.message(), "param": error.field(), "line": null }],
    })
}
