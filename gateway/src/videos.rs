//! Video generation tasks (2.6, 2.7, 2.9) and their states (section 3).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gatewright::limits::{Rules, integer};
use gatewright::{ErrorCode, catalog};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::call::{Call, Response};
use crate::chat::text;
use crate::error::{ApiError, json_response};
use crate::files::{Files, Kind, unix_seconds};
use crate::models;
use crate::service::Provider;
use crate::simulator::video;
use crate::webhook::{self, Delivery};

/// A prompt that contains this makes its task fail, so that users can test their handling; `[fail: reason]` also
/// gives the message.
pub const FAILURE_MARKER: &str = "[fail]";
const FAILURE_WITH_MESSAGE: &str = "[fail:";
/// Message of a task that failed by [`FAILURE_MARKER`].
const FAILURE_MESSAGE: &str = "the simulated provider failed, as the prompt asked";

/// Most tasks remembered; the oldest finished ones are forgotten first.
const MOST_TASKS: usize = 1_000;
/// Most videos encoded at once: each takes a processor.
const MOST_ENCODINGS: usize = 2;
/// How long the address of a video is valid. The source states a lifetime for images alone (8); videos get the same.
const LIFETIME: Duration = Duration::from_secs(catalog::IMAGE_URL_LIFETIME_S as u64);

/// The tasks.
pub(crate) struct Tasks {
    kept: Mutex<Kept>,
    encodings: Semaphore,
}

#[derive(Default)]
struct Kept {
    tasks: HashMap<String, Task>,
    /// Oldest first.
    order: VecDeque<String>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self { kept: Mutex::default(), encodings: Semaphore::new(MOST_ENCODINGS) }
    }
}

/// One task.
#[derive(Debug, Clone)]
struct Task {
    id: String,
    created: u64,
    model: &'static str,
    duration_s: u32,
    size: (u16, u16),
    state: State,
}

/// `pending` is missing: the table has no transition into it, and none here waits (section 3).
#[derive(Debug, Clone)]
enum State {
    Processing,
    /// The name of the file.
    Completed(String),
    /// What went wrong.
    Failed(String),
}

impl Task {
    /// The record of 2.7. `public`: scheme, host and port for the file's address.
    fn record(&self, files: &Files, public: &str) -> Value {
        let mut record =
            json!({ "id": self.id, "status": "processing", "created": self.created, "model": self.model });
        match &self.state {
            State::Processing => {}
            State::Completed(file) => {
                record["status"] = json!("completed");
                record["output"] = json!({
                    "url": format!("{public}{}", files.address(file, LIFETIME)),
                    "duration": self.duration_s,
                    "resolution": format!("{}x{}", self.size.0, self.size.1),
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
}

impl Tasks {
    /// Remembers a task. Errors: as many as are remembered are all still processing.
    fn add(&self, task: Task) -> Result<(), ApiError> {
        let mut guard = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *guard;
        if kept.order.len() >= MOST_TASKS {
            let finished =
                |id: &String| kept.tasks.get(id).is_none_or(|task| !matches!(task.state, State::Processing));
            let oldest = kept.order.iter().position(finished).ok_or_else(|| {
                ApiError::new(
                    &ErrorCode::SERVER_IS_OVERLOADED,
                    format!("{MOST_TASKS} video tasks are processing"),
                )
            })?;
            if let Some(id) = kept.order.remove(oldest) {
                kept.tasks.remove(&id);
            }
        }
        kept.order.push_back(task.id.clone());
        kept.tasks.insert(task.id.clone(), task);
        Ok(())
    }

    fn finish(&self, id: &str, state: State) -> Option<Task> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let task = kept.tasks.get_mut(id)?;
        task.state = state;
        Some(task.clone())
    }

    fn get(&self, id: &str) -> Option<Task> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).tasks.get(id).cloned()
    }
}

/// `POST /v1/videos/generations`: the task, already processing (section 3).
pub(crate) fn create(provider: &Provider, call: &Call) -> Result<Response, ApiError> {
    let rules = Rules::default().private_webhooks(provider.config.allow_private_webhooks);
    let body = call.checked_body_by(rules)?;
    let model = models::video_model(text(&body["model"]), call.operation)?;
    let resolution = text(call.field(&body, "resolution"));
    let aspect_ratio = text(call.field(&body, "aspect_ratio"));
    let size = video::size(resolution, aspect_ratio).ok_or_else(|| {
        let message = format!("resolution {resolution:?} with aspect_ratio {aspect_ratio:?} is none of 2.6");
        ApiError::new(&ErrorCode::INVALID_VALUE, message).param("resolution")
    })?;
    let duration_s =
        integer(call.field(&body, "duration")).and_then(|seconds| u32::try_from(seconds).ok()).ok_or_else(
            || ApiError::new(&ErrorCode::INVALID_VALUE, "duration is no number of seconds").param("duration"),
        )?;
    let delivery = match body["webhook_url"].as_str() {
        Some(url) => Some(webhook::accept(url, &provider.config, &provider.webhook_secret)?),
        None => None,
    };
    let id = format!("video_{}", Uuid::new_v4().simple());
    let task =
        Task { id, created: unix_seconds(), model: model.id, duration_s, size, state: State::Processing };
    provider.tasks.add(task.clone())?;

    let public = provider.public_url(&call.headers);
    let mut record = task.record(&provider.files, &public);
    // In seconds; the source states no unit (2.7).
    record["estimated_time"] = json!(provider.config.video_time.as_secs() + 1);
    let work = Work {
        tasks: Arc::clone(&provider.tasks),
        files: Arc::clone(&provider.files),
        prompt: text(&body["prompt"]).to_owned(),
        time: provider.config.video_time,
        public,
        delivery,
        task,
    };
    tokio::spawn(work.run());
    Ok(json_response(&record))
}

/// `GET /v1/videos/generations/{task_id}`.
pub(crate) fn retrieve(provider: &Provider, call: &Call) -> Result<Response, ApiError> {
    let id = call.path("task_id");
    let task = provider.tasks.get(id).ok_or_else(|| {
        ApiError::new(&ErrorCode::NOT_FOUND, format!("there is no video task {id:?}")).param("task_id")
    })?;
    Ok(json_response(&task.record(&provider.files, &provider.public_url(&call.headers))))
}

/// What is left to do for a task once it is submitted.
struct Work {
    tasks: Arc<Tasks>,
    files: Arc<Files>,
    task: Task,
    prompt: String,
    time: Duration,
    public: String,
    delivery: Option<Delivery>,
}

impl Work {
    async fn run(self) {
        let (state, ()) = tokio::join!(self.generate(), tokio::time::sleep(self.time));
        let Some(task) = self.tasks.finish(&self.task.id, state) else { return };
        if let Some(delivery) = self.delivery {
            delivery.send(&task.id, &task.record(&self.files, &self.public)).await;
        }
    }

    async fn generate(&self) -> State {
        if let Some(message) = failure(&self.prompt) {
            return State::Failed(message);
        }
        let Ok(_permit) = self.tasks.encodings.acquire().await else {
            return State::Failed("the gateway is stopping".to_owned());
        };
        let (prompt, size, duration_s) = (self.prompt.clone(), self.task.size, self.task.duration_s);
        match tokio::task::spawn_blocking(move || video::encode(&prompt, size, duration_s)).await {
            Ok(file) => State::Completed(self.files.keep(Kind::Mp4, file)),
            Err(_) => State::Failed("encoding the video failed".to_owned()),
        }
    }
}

/// The message of the failure that a prompt asks for.
fn failure(prompt: &str) -> Option<String> {
    if prompt.contains(FAILURE_MARKER) {
        return Some(FAILURE_MESSAGE.to_owned());
    }
    let (_, after) = prompt.split_once(FAILURE_WITH_MESSAGE)?;
    let message = after.split_once(']')?.0.trim();
    Some(if message.is_empty() { FAILURE_MESSAGE.to_owned() } else { message.to_owned() })
}
