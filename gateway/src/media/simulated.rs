//! Videos of the embedded provider: each waits for a free encoder, is encoded, and takes a minimum time.

use std::sync::Arc;
use std::time::Duration;

use gatewright_simulator::video;
use gatewright_store::{FileKind, Output, StoredFile, TaskState};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::app::App;
use crate::storage::{FileReservation, LIFETIME};
use crate::tasks::{LeaseGuard, QueuedVideo, STOPPED};
use crate::wire::ApiError;

/// A prompt that contains this marker makes its task fail, so that users can test their error handling;
/// `[fail: reason]` also sets the message.
pub const FAILURE_MARKER: &str = "[fail]";
const FAILURE_WITH_MESSAGE: &str = "[fail:";
/// Message of a task that failed because of [`FAILURE_MARKER`].
const FAILURE_MESSAGE: &str = "the simulated provider failed because the prompt requested it";

/// Pause before another attempt to write a file that couldn't be stored.
const PAUSE: Duration = Duration::from_secs(1);

/// How a task ends.
pub(super) enum Job {
    Encode {
        prompt: String,
        size: (u16, u16),
        duration_s: u32,
        room: FileReservation,
        /// `None`: no encoder is free yet.
        place: Option<OwnedSemaphorePermit>,
        ahead: QueuedVideo,
    },
    /// It fails with this message.
    Fail(String),
}

impl Job {
    /// `owner`: the id of the API key. Errors: there is no space for the file.
    pub(super) async fn new(
        app: &App,
        owner: &Arc<str>,
        prompt: &str,
        size: (u16, u16),
        duration_s: u32,
    ) -> Result<Self, ApiError> {
        if let Some(message) = failure(prompt) {
            return Ok(Self::Fail(message));
        }
        Ok(Self::Encode {
            prompt: prompt.to_owned(),
            size,
            duration_s,
            room: app.room_for_files(owner, video::expected_bytes(size, duration_s)).await?,
            place: app.task_runner.schedule.free_place(),
            ahead: QueuedVideo::new(&app.task_runner.schedule, duration_s),
        })
    }

    /// The initial state of the task.
    pub(super) fn state(&self) -> TaskState {
        match self {
            Self::Encode { place: None, .. } => TaskState::Pending,
            Self::Encode { .. } | Self::Fail(_) => TaskState::Processing,
        }
    }

    /// Makes the video of a task. `time`: its minimum duration.
    pub(super) async fn run(
        self,
        app: &App,
        lease: &LeaseGuard,
        time: Duration,
        deadline: Instant,
    ) -> TaskState {
        let mut trouble = None;
        let making = self.make(app, lease, time, deadline, &mut trouble);
        if let Ok(state) = tokio::time::timeout_at(deadline, making).await {
            return state;
        }
        let trouble = trouble.map(|trouble| format!("; the last problem: {trouble}")).unwrap_or_default();
        TaskState::failed(format!("there was no video within {:?}{trouble}", app.config.video_timeout))
    }

    /// The same without a deadline. `trouble`: the last failure.
    async fn make(
        self,
        app: &App,
        lease: &LeaseGuard,
        time: Duration,
        deadline: Instant,
        trouble: &mut Option<String>,
    ) -> TaskState {
        let (prompt, size, duration_s, mut room, place, ahead) = match self {
            Self::Encode { prompt, size, duration_s, room, place, ahead } => {
                (prompt, size, duration_s, room, place, ahead)
            }
            Self::Fail(message) => {
                tokio::time::sleep(time).await;
                return TaskState::failed(message);
            }
        };
        let place = match place {
            Some(place) => place,
            None => match app.task_runner.schedule.place().await {
                Some(place) => place,
                None => return TaskState::failed(STOPPED),
            },
        };
        lease.advance(&TaskState::Processing).await;
        let encode = async move {
            // Held by the thread: abandoned work still occupies a processor until it ends.
            let encoded = tokio::task::spawn_blocking(move || {
                let _held = (place, ahead);
                video::encode(&prompt, size, duration_s)
            });
            let Ok(video) = encoded.await else { return TaskState::failed("encoding the video failed") };
            loop {
                match keep(&mut room, &video, deadline).await {
                    Ok(file) => {
                        let size = (size.0.into(), size.1.into());
                        return TaskState::Completed(Output { file, duration_s, size });
                    }
                    // The disk or the store may recover.
                    Err(error) => {
                        tracing::warn!("the file of a video cannot be stored yet: {error}");
                        *trouble = Some(error.to_string());
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            }
        };
        let (state, ()) = tokio::join!(encode, tokio::time::sleep(time));
        state
    }
}

async fn keep(room: &mut FileReservation, video: &[u8], deadline: Instant) -> Result<StoredFile, ApiError> {
    let mut file = room.write(FileKind::Mp4).await?;
    file.put(video).await?;
    file.finish(LIFETIME, deadline).await
}

/// The failure message that a prompt requests.
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
    use http_body_util::BodyExt as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::server::Embedded;
    use crate::wire::Body;
    use gatewright_config::Config;

    /// The task of a video.
    async fn task(gateway: &Embedded, request: http::request::Builder, body: &Value) -> Value {
        let request = request
            .header("authorization", format!("Bearer {}", gateway.key().expose()))
            .header("content-type", "application/json");
        let answer = gateway.answer(request.body(Body::from(body.to_string())).expect("a request")).await;
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        serde_json::from_slice(&body).expect("JSON")
    }

    #[tokio::test]
    async fn simulated_video_fails_at_its_timeout() {
        let (video_time, video_timeout) = (Duration::from_hours(1), Duration::from_millis(500));
        let config = Config { video_time, video_timeout, ..Config::default() };
        let gateway = Embedded::new(config).expect("a gateway");
        let _taken = [(), ()].map(|()| gateway.app().task_runner.schedule.free_place().expect("both places"));
        // The first video gets no encoder; the second one needs none, and would end after an hour.
        for (prompt, begins) in [("a kite", "pending"), ("[fail]", "processing")] {
            let body = json!({ "model": "video_model_1", "prompt": prompt });
            let path = "/v1/videos/generations";
            let submitted = task(&gateway, http::Request::post(path), &body).await;
            assert_eq!(submitted["status"], "processing", "{submitted}");
            let path = format!("{path}/{}", submitted["id"].as_str().expect("an id"));
            let ended = loop {
                let now = task(&gateway, http::Request::get(&path), &Value::Null).await;
                if now["status"] != begins {
                    break now;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            };
            assert_eq!(ended["status"], "failed", "{ended}");
            assert_eq!(ended["error"]["message"], "there was no video within 500ms");
        }
    }
}
