//! Video generation tasks (2.6, 2.7, 2.9) and their states (section 3).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gatewright::ErrorCode;
use gatewright::limits::{Rules, integer};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::call::{Call, Response};
use crate::chat::text;
use crate::error::{ApiError, json_response};
use crate::files::{Files, Kind, LIFETIME, Room, unix_seconds};
use crate::models;
use crate::service::Provider;
use crate::simulator::video;
use crate::webhook::Delivery;

/// A prompt that contains this makes its task fail, so that users can test their handling; `[fail: reason]` also
/// gives the message.
pub const FAILURE_MARKER: &str = "[fail]";
const FAILURE_WITH_MESSAGE: &str = "[fail:";
/// Message of a task that failed by [`FAILURE_MARKER`].
const FAILURE_MESSAGE: &str = "the simulated provider failed, as the prompt asked";

/// Most tasks remembered; the oldest finished ones are forgotten first.
const MOST_TASKS: usize = 1_000;
/// Most videos encoded at once: each takes a processor. Other tasks are pending meanwhile.
const MOST_ENCODINGS: usize = 2;
/// How long a second of video takes to encode, about.
const PACE: Duration = Duration::from_millis(100);
/// Message of a task that the gateway did not get to finish.
const STOPPED: &str = "the gateway stopped before the video was ready";

/// The tasks.
pub(crate) struct Tasks {
    kept: Mutex<Kept>,
    places: Arc<Semaphore>,
    work: TaskTracker,
    stopped: CancellationToken,
}

#[derive(Default)]
struct Kept {
    tasks: HashMap<String, Task>,
    /// Oldest first.
    order: VecDeque<String>,
    /// Seconds of video that wait to be encoded or are being encoded.
    ahead_s: u32,
}

impl Default for Tasks {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            places: Arc::new(Semaphore::new(MOST_ENCODINGS)),
            work: TaskTracker::new(),
            stopped: CancellationToken::new(),
        }
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

/// The states of section 3.
#[derive(Debug, Clone)]
enum State {
    /// Waits for a place among those that are encoded.
    Pending,
    Processing,
    /// The name of the file.
    Completed(String),
    /// What went wrong.
    Failed(String),
}

impl State {
    fn is_final(&self) -> bool {
        matches!(self, Self::Completed(_) | Self::Failed(_))
    }
}

impl Task {
    /// The record of 2.7. `public`: scheme, host and port for the file's address.
    fn record(&self, files: &Files, public: &str) -> Value {
        let mut record =
            json!({ "id": self.id, "status": "processing", "created": self.created, "model": self.model });
        match &self.state {
            State::Pending => record["status"] = json!("pending"),
            State::Processing => {}
            State::Completed(file) => {
                record["status"] = json!("completed");
                record["output"] = json!({
                    "url": format!("{public}{}", files.address(file)),
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
    /// Remembers a task. Errors: as many as are remembered are all unfinished.
    fn add(&self, task: Task) -> Result<(), ApiError> {
        let mut guard = self.lock();
        let kept = &mut *guard;
        if kept.order.len() >= MOST_TASKS {
            let finished = |id: &String| kept.tasks.get(id).is_none_or(|task| task.state.is_final());
            let oldest = kept.order.iter().position(finished).ok_or_else(|| {
                ApiError::new(
                    &ErrorCode::SERVER_IS_OVERLOADED,
                    format!("{MOST_TASKS} video tasks are pending or processing"),
                )
                .retry_after(seconds(kept.wait(0)))
            })?;
            if let Some(id) = kept.order.remove(oldest) {
                kept.tasks.remove(&id);
            }
        }
        kept.order.push_back(task.id.clone());
        kept.tasks.insert(task.id.clone(), task);
        Ok(())
    }

    /// Moves a task on. None if it has ended already.
    fn advance(&self, id: &str, state: State) -> Option<Task> {
        let mut kept = self.lock();
        let task = kept.tasks.get_mut(id).filter(|task| !task.state.is_final())?;
        task.state = state;
        Some(task.clone())
    }

    fn get(&self, id: &str) -> Option<Task> {
        self.lock().tasks.get(id).cloned()
    }

    /// Ready when no task is unfinished and no notification on its way.
    pub(crate) async fn ended(&self) {
        self.work.close();
        self.work.wait().await;
    }

    /// Ends what is unfinished as failed, and gives the ids.
    pub(crate) async fn stop(&self) -> Vec<String> {
        let mut ended = Vec::new();
        for task in self.lock().tasks.values_mut().filter(|task| !task.state.is_final()) {
            task.state = State::Failed(STOPPED.to_owned());
            ended.push(task.id.clone());
        }
        self.stopped.cancel();
        self.ended().await;
        ended
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// How long until a video of so many seconds is encoded, behind those that came before.
    fn wait(&self, duration_s: u32) -> Duration {
        PACE * (self.ahead_s / u32::try_from(MOST_ENCODINGS).unwrap_or(1) + duration_s)
    }
}

/// Whole seconds, at least one.
fn seconds(time: Duration) -> u64 {
    time.as_millis().div_ceil(1000).max(1).try_into().unwrap_or(u64::MAX)
}

/// A video that is to be encoded: it counts among those ahead of others until dropped.
struct Ahead {
    tasks: Arc<Tasks>,
    duration_s: u32,
}

impl Ahead {
    fn new(tasks: &Arc<Tasks>, duration_s: u32) -> Self {
        tasks.lock().ahead_s += duration_s;
        Self { tasks: Arc::clone(tasks), duration_s }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.tasks.lock().ahead_s -= self.duration_s;
    }
}

/// `POST /v1/videos/generations`: the task, processing (section 3), or pending where all places are taken.
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
        Some(url) => Some(provider.deliveries.accept(url)?),
        None => None,
    };
    let tasks = &provider.tasks;
    let estimate = provider.config.video_time + tasks.lock().wait(duration_s);
    let job = match failure(text(&body["prompt"])) {
        Some(message) => Job::Fail(message),
        None => Job::Encode {
            prompt: text(&body["prompt"]).to_owned(),
            room: provider.files.reserve(video::expected_bytes(size, duration_s))?,
            place: Arc::clone(&tasks.places).try_acquire_owned().ok(),
            ahead: Ahead::new(tasks, duration_s),
        },
    };
    let state = if job.waits() { State::Pending } else { State::Processing };
    let id = format!("video_{}", Uuid::new_v4().simple());
    let task = Task { id, created: unix_seconds(), model: model.id, duration_s, size, state };
    tasks.add(task.clone())?;

    let public = provider.public_url(&call.headers);
    let mut record = task.record(&provider.files, &public);
    // In seconds; the source states no unit (2.7).
    record["estimated_time"] = json!(seconds(estimate));
    let work = Work {
        tasks: Arc::clone(tasks),
        files: Arc::clone(&provider.files),
        time: provider.config.video_time,
        public,
        delivery,
        task,
    };
    tasks.work.spawn(work.run(job));
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

/// How a task ends.
enum Job {
    Encode {
        prompt: String,
        room: Room,
        /// None: it is to be waited for.
        place: Option<OwnedSemaphorePermit>,
        ahead: Ahead,
    },
    /// By this message.
    Fail(String),
}

impl Job {
    fn waits(&self) -> bool {
        matches!(self, Self::Encode { place: None, .. })
    }
}

/// What is left to do for a task once it is submitted.
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
            () = self.tasks.stopped.cancelled() => {
                let task = self.task.id;
                tracing::warn!(task, webhook = self.delivery.is_some(), "given up: the gateway stopped");
            }
        }
    }

    async fn end(&self, job: Job) {
        let state = self.generate(job).await;
        let Some(task) = self.tasks.advance(&self.task.id, state) else { return };
        if let Some(delivery) = &self.delivery {
            delivery.send(&task.id, &task.record(&self.files, &self.public)).await;
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
            None => match Arc::clone(&self.tasks.places).acquire_owned().await {
                Ok(place) => place,
                Err(_) => return State::Failed(STOPPED.to_owned()),
            },
        };
        self.tasks.advance(&self.task.id, State::Processing);
        let (size, duration_s) = (self.task.size, self.task.duration_s);
        let encode = async move {
            // Held by the thread: what nobody waits for any longer still takes its processor until it ends.
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

/// The message of the failure that a prompt asks for.
fn failure(prompt: &str) -> Option<String> {
    if prompt.contains(FAILURE_MARKER) {
        return Some(FAILURE_MESSAGE.to_owned());
    }
    let (_, after) = prompt.split_once(FAILURE_WITH_MESSAGE)?;
    let message = after.split_once(']')?.0.trim();
    Some(if message.is_empty() { FAILURE_MESSAGE.to_owned() } else { message.to_owned() })
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::{Config, Embedded};

    async fn send(gateway: &Embedded, request: http::request::Builder, body: &str) -> Response {
        let request = request
            .header("authorization", format!("Bearer {}", gateway.key().expose()))
            .header("content-type", "application/json");
        gateway.answer(request.body(Body::from(body.to_owned())).expect("a request")).await
    }

    async fn ask(gateway: &Embedded, request: http::request::Builder, body: &str) -> Value {
        let response = send(gateway, request, body).await;
        assert_eq!(response.status(), 200);
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        serde_json::from_slice(&body).expect("JSON")
    }

    async fn submit(gateway: &Embedded, prompt: &str, duration_s: u32) -> Value {
        let body = json!({ "model": "video_model_1", "prompt": prompt, "duration": duration_s });
        ask(gateway, http::Request::post("/v1/videos/generations"), &body.to_string()).await
    }

    async fn status(gateway: &Embedded, task: &Value) -> String {
        let path = format!("/v1/videos/generations/{}", text(&task["id"]));
        text(&ask(gateway, http::Request::get(path), "").await["status"]).to_owned()
    }

    #[tokio::test]
    async fn a_task_is_pending_until_it_has_a_place_and_processing_from_then_on() {
        // Section 3: pending is "queued, waiting to start".
        let config = Config { video_time: Duration::from_hours(1), ..Config::default() };
        let gateway = Embedded::new(config).expect("a gateway");
        let places = Arc::clone(&gateway.provider().tasks.places);
        let taken = places.acquire_many_owned(2).await.expect("both places");
        let task = submit(&gateway, "a kite", 3).await;
        assert_eq!((text(&task["status"]), status(&gateway, &task).await.as_str()), ("pending", "pending"));
        // What asks to fail is not encoded, and needs no place.
        assert_eq!(submit(&gateway, "[fail]", 3).await["status"], "processing");
        drop(taken);
        while status(&gateway, &task).await == "pending" {
            tokio::task::yield_now().await;
        }
        assert_eq!(status(&gateway, &task).await, "processing");
        assert_eq!(gateway.provider().tasks.stop().await.len(), 2);
        assert_eq!(status(&gateway, &task).await, "failed");
    }

    #[tokio::test]
    async fn the_estimated_time_grows_with_the_duration_and_with_what_comes_before() {
        // 2.7.
        let gateway = Embedded::new(Config::default()).expect("a gateway");
        let places = Arc::clone(&gateway.provider().tasks.places);
        let _taken = places.acquire_many_owned(2).await.expect("both places");
        let mut estimates = Vec::new();
        for duration_s in [3, 15, 15, 15, 15] {
            let task = submit(&gateway, "a kite", duration_s).await;
            estimates.push(task["estimated_time"].as_u64().expect("whole seconds"));
        }
        assert!(estimates[0] > 0 && estimates[0] < estimates[1], "{estimates:?}");
        assert!(estimates.is_sorted() && estimates[1] < estimates[4], "{estimates:?}");
    }

    #[tokio::test]
    async fn a_task_without_room_for_its_file_is_refused_with_the_time_to_come_back() {
        // Section 8: what is kept keeps its hour.
        let config = Config { max_file_bytes: 2_000_000, ..Config::default() };
        let gateway = Embedded::new(config).expect("a gateway");
        let _room = gateway.provider().files.reserve(1_900_000).expect("room");
        let body =
            json!({ "model": "video_model_1", "prompt": "a kite", "duration": 3, "resolution": "720p" });
        let request = http::Request::post("/v1/videos/generations");
        let response = send(&gateway, request, &body.to_string()).await;
        assert_eq!((response.status().as_u16(), response.headers().contains_key("retry-after")), (503, true));
    }
}
