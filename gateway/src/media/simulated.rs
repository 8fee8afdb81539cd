//! Videos of the embedded provider: one waits for a free encoder, is encoded, and takes a minimum time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use crate::app::App;
use crate::simulator::video;
use crate::store::{Ahead, Kind, LIFETIME, Output, Room, STOPPED, State};
use crate::wire::ApiError;

/// A prompt that contains this marker makes its task fail, so that users can test their error handling;
/// `[fail: reason]` also sets the message.
pub const FAILURE_MARKER: &str = "[fail]";
const FAILURE_WITH_MESSAGE: &str = "[fail:";
/// Message of a task that failed because of [`FAILURE_MARKER`].
const FAILURE_MESSAGE: &str = "the simulated provider failed because the prompt asked for it";

/// How a task ends.
pub(super) enum Job {
    Encode {
        prompt: String,
        size: (u16, u16),
        duration_s: u32,
        room: Room,
        /// `None`: no encoder is free yet.
        place: Option<OwnedSemaphorePermit>,
        ahead: Ahead,
    },
    /// It fails with this message.
    Fail(String),
}

impl Job {
    /// Errors: there is no room for the file.
    pub(super) fn new(app: &App, prompt: &str, size: (u16, u16), duration_s: u32) -> Result<Self, ApiError> {
        if let Some(message) = failure(prompt) {
            return Ok(Self::Fail(message));
        }
        Ok(Self::Encode {
            prompt: prompt.to_owned(),
            size,
            duration_s,
            room: app.files.reserve(video::expected_bytes(size, duration_s))?,
            place: app.tasks.free_place(),
            ahead: Ahead::new(&app.tasks, duration_s),
        })
    }

    /// The state of the task as it begins.
    pub(super) fn state(&self) -> State {
        match self {
            Self::Encode { place: None, .. } => State::Pending,
            Self::Encode { .. } | Self::Fail(_) => State::Processing,
        }
    }

    /// Makes the video of a task. `time`: the minimum that it takes.
    pub(super) async fn run(self, app: &Arc<App>, task: &str, time: Duration) -> State {
        let (prompt, size, duration_s, room, place, ahead) = match self {
            Self::Encode { prompt, size, duration_s, room, place, ahead } => {
                (prompt, size, duration_s, room, place, ahead)
            }
            Self::Fail(message) => {
                tokio::time::sleep(time).await;
                return State::failed(message);
            }
        };
        let place = match place {
            Some(place) => place,
            None => match app.tasks.place().await {
                Some(place) => place,
                None => return State::failed(STOPPED),
            },
        };
        app.tasks.advance(task, State::Processing);
        let encode = async move {
            // Held by the thread: abandoned work still takes a processor until it ends.
            let encoded = tokio::task::spawn_blocking(move || {
                let _held = (place, ahead);
                let file = video::encode(&prompt, size, duration_s);
                room.keep(Kind::Mp4, vec![file], LIFETIME)
            });
            match encoded.await {
                Ok(Ok(mut names)) => State::Completed(Output {
                    file: names.pop().unwrap_or_default(),
                    duration_s,
                    size: (size.0.into(), size.1.into()),
                    format: Kind::Mp4.extension(),
                }),
                Ok(Err(full)) => State::failed(full.to_string()),
                Err(_) => State::failed("encoding the video failed"),
            }
        };
        let (state, ()) = tokio::join!(encode, tokio::time::sleep(time));
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
