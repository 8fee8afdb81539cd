//! Video generation tasks (2.6, 2.7, 2.9) and their states (section 3).

use std::sync::Arc;
use std::time::Duration;

use gatewright::ErrorCode;
use gatewright::limits::{Rules, integer};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use crate::app::App;
use crate::clock::{unix_seconds, whole_seconds};
use crate::models;
use crate::outgoing::Delivery;
use crate::simulator::video;
use crate::store::{Ahead, Files, Kind, LIFETIME, Room, STOPPED, State, Task, Tasks};
use crate::wire::json::text;
use crate::wire::{ApiError, Call, Response, json_response};

/// A prompt that contains this marker makes its task fail, so that users can test their error handling;
/// `[fail: reason]` also sets the message.
pub const FAILURE_MARKER: &str = "[fail]";
const FAILURE_WITH_MESSAGE: &str = "[fail:";
/// Message of a task that failed because of [`FAILURE_MARKER`].
const FAILURE_MESSAGE: &str = "the simulated provider failed because the prompt asked for it";

/// The task object of 2.7. `public`: scheme, host and port of the file URL.
fn record_of(task: &Task, files: &Files, public: &str) -> Value {
    let mut record =
        json!({ "id": task.id, "status": "processing", "created": task.created, "model": task.model });
    match &task.state {
        State::Pending => record["status"] = json!("pending"),
        State::Processing => {}
        State::Completed(file) => {
            record["status"] = json!("completed");
            record["output"] = json!({
                "url": format!("{public}{}", files.address(file)),
                "duration": task.duration_s,
                "resolution": format!("{}x{}", task.size.0, task.size.1),
                "format": video::FORMAT,
            });
        }
        State::Failed(message) => {
            record["status"] = json!("failed");
            record["error"] = json!({ "message": message, "code": "generation_failed" });
        }
    }
    record
}

/// `POST /v1/videos/generations`: returns the task, processing (section 3) or, if all workers are busy, pending.
pub(crate) fn create(app: &App, call: &Call) -> Result<Response, ApiError> {
    let rules = Rules::default().private_webhooks(app.config.allow_private_webhooks);
    let body = call.checked_body_by(rules)?;
    let model = models::video_model(text(&body["model"]), call.operation)?;
    let resolution = text(call.field(&body, "resolution"));
    let aspect_ratio = text(call.field(&body, "aspect_ratio"));
    let size = video::size(resolution, aspect_ratio).ok_or_else(|| {
        let message =
            format!("resolution {resolution:?} is not available with aspect_ratio {aspect_ratio:?}");
        ApiError::new(&ErrorCode::INVALID_VALUE, message).param("resolution")
    })?;
    let duration_s = integer(call.field(&body, "duration"))
        .and_then(|seconds| u32::try_from(seconds).ok())
        .ok_or_else(|| {
        ApiError::new(&ErrorCode::INVALID_VALUE, "duration must be a number of seconds").param("duration")
    })?;
    let delivery = match body["webhook_url"].as_str() {
        Some(url) => Some(app.deliveries.accept(url)?),
        None => None,
    };
    let tasks = &app.tasks;
    let estimate = app.config.video_time + tasks.wait(duration_s);
    let job = match failure(text(&body["prompt"])) {
        Some(message) => Job::Fail(message),
        None => Job::Encode {
            prompt: text(&body["prompt"]).to_owned(),
            room: app.files.reserve(video::expected_bytes(size, duration_s))?,
            place: tasks.free_place(),
            ahead: Ahead::new(tasks, duration_s),
        },
    };
    let state = if job.waits() { State::Pending } else { State::Processing };
    let id = format!("video_{}", Uuid::new_v4().simple());
    let owner = Arc::clone(call.caller.id());
    let task = Task { id, owner, created: unix_seconds(), model: model.id, duration_s, size, state };
    tasks.add(task.clone())?;

    let public = app.public_url(call);
    let mut record = record_of(&task, &app.files, &public);
    // In seconds; the source states no unit (2.7).
    record["estimated_time"] = json!(whole_seconds(estimate));
    let work = Work {
        tasks: Arc::clone(tasks),
        files: Arc::clone(&app.files),
        time: app.config.video_time,
        public,
        delivery,
        task,
    };
    tasks.spawn(work.run(job));
    Ok(json_response(&record))
}

/// `GET /v1/videos/generations/{task_id}`.
pub(crate) fn retrieve(app: &App, call: &Call) -> Result<Response, ApiError> {
    let id = call.path("task_id");
    let task = app.tasks.get(call.caller.id(), id).ok_or_else(|| {
        ApiError::new(&ErrorCode::NOT_FOUND, format!("there is no video task {id:?}")).param("task_id")
    })?;
    Ok(json_response(&record_of(&task, &app.files, &app.public_url(call))))
}

/// How a task ends.
enum Job {
    Encode {
        prompt: String,
        room: Room,
        /// `None`: no encoder is free yet.
        place: Option<OwnedSemaphorePermit>,
        ahead: Ahead,
    },
    /// It fails with this message.
    Fail(String),
}

impl Job {
    fn waits(&self) -> bool {
        matches!(self, Self::Encode { place: None, .. })
    }
}

/// The work that remains for a submitted task.
struct Work {
    tasks: Arc<Tasks>,
    files: Arc<Files>,
    task: Task,
    time: Duration,
    public: String,
    delivery: Option<Delivery>,
}

impl Work {
    async fn run(self, job: Job) {
        tokio::select! {
            () = self.end(job) => {}
            () = self.tasks.stopped() => {
                let task = self.task.id;
                tracing::warn!(task, webhook = self.delivery.is_some(), "abandoned: the gateway stopped");
            }
        }
    }

    async fn end(&self, job: Job) {
        let state = self.generate(job).await;
        let Some(task) = self.tasks.advance(&self.task.id, state) else { return };
        if let Some(delivery) = &self.delivery {
            delivery.send(&task.id, &record_of(&task, &self.files, &self.public)).await;
        }
    }

    async fn generate(&self, job: Job) -> State {
        let (prompt, room, place, ahead) = match job {
            Job::Encode { prompt, room, place, ahead } => (prompt, room, place, ahead),
            Job::Fail(message) => {
                tokio::time::sleep(self.time).await;
                return State::Failed(message);
            }
        };
        let place = match place {
            Some(place) => place,
            None => match self.tasks.place().await {
                Some(place) => place,
                None => return State::Failed(STOPPED.to_owned()),
            },
        };
        self.tasks.advance(&self.task.id, State::Processing);
        let (size, duration_s) = (self.task.size, self.task.duration_s);
        let encode = async move {
            // Held by the thread: abandoned work still takes a processor until it ends.
            let encoded = tokio::task::spawn_blocking(move || {
                let _held = (place, ahead);
                let file = video::encode(&prompt, size, duration_s);
                room.keep(Kind::Mp4, vec![file], LIFETIME)
            });
            match encoded.await {
                Ok(Ok(mut names)) => State::Completed(names.pop().unwrap_or_default()),
                Ok(Err(full)) => State::Failed(full.to_string()),
                Err(_) => State::Failed("encoding the video failed".to_owned()),
            }
        };
        let (state, ()) = tokio::join!(encode, tokio::time::sleep(self.time));
        state
    }
}

/// The failure message that a prompt asks for.
fn failure(prompt: &str) -> Option<String> {
    if prompt.contains(FAILURE_MARKER) {
        return Some(FAILURE_MESSAGE.to_owned());
    }
    let (_, after) = prompt.split_once(FAILURE_WITH_MESSAGE)?;
    let message = after.split_once(']')?.0.trim();
    Some(if message.is_empty() { FAILURE_MESSAGE.to_owned() } else { message.to_owned() })
}
