//! Waiting for a video task (section 3), typed and raw, saving its video, and a short way to write its request. The
//! operations themselves are generated.

use std::fmt;
use std::path::Path;

use serde::Deserialize;

use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::files::{SaveOptions, Saved};
use crate::operations::RETRIEVE_VIDEO;
use crate::options::Call;
use crate::polling::{Schedule, WaitOptions};
use crate::resources::VideosGenerations;
use crate::response::{RawResponse, Response};
use crate::types::{VideoGenerationRequest, VideoTask};

impl VideoGenerationRequest {
    /// A request with its required fields (2.6); the others are public fields.
    #[expect(clippy::missing_panics_doc, reason = "all that is required is given")]
    pub fn new(model: impl Into<String>, prompt: impl Into<String>) -> Self {
        let request = Self::builder().model(model.into()).prompt(prompt.into());
        request.try_into().expect("all that a request needs is given")
    }
}

impl VideosGenerations<'_> {
    /// Waits until a task is completed or failed, and gives it as it is when completed. States other than those
    /// two, unknown ones included, count as under way.
    ///
    /// Once the gateway has answered a look-up, the wait outlives look-ups that fail in a way that passes (no
    /// connection, a timeout, 408, 409, 429, 5xx but 501, each after the client's own retries): it looks again until
    /// the deadline.
    ///
    /// Errors: TaskFailed with the task's own message (2.7) and record; Timeout, with the latest failure as its
    /// source if there was one; those of the look-up.
    ///
    /// Source: 2.7, 3.
    pub async fn wait(&self, task_id: &str, options: WaitOptions) -> Result<Response<VideoTask>, Error> {
        finish(self.client.watch_video(task_id, &options), &options).await
    }

    /// Submits a task and waits for it. Errors: as those of `create`, then as those of `wait`.
    ///
    /// Source: 2.6, 2.7, 3.
    pub async fn create_and_wait(
        &self,
        body: &VideoGenerationRequest,
        options: WaitOptions,
    ) -> Result<Response<VideoTask>, Error> {
        let task = self.create(body).await?;
        finish(self.client.watch_video(&task.id, &options).submitted(), &options).await
    }

    /// Saves the video of a completed task; as [`Client::save`] its `output.url`.
    ///
    /// Errors: InvalidRequest where the task has no video (yet); those of [`Client::save`].
    ///
    /// Source: 2.7, 4 rule 4.
    pub async fn save(
        &self,
        task: &VideoTask,
        path: impl AsRef<Path>,
        options: SaveOptions,
    ) -> Result<Saved, Error> {
        let url = task.output.as_ref().map(|output| output.url.as_str());
        self.client.save_output(&task.id, &task.status, url, path.as_ref(), options).await
    }
}

async fn finish(mut watch: VideoWatch, options: &WaitOptions) -> Result<Response<VideoTask>, Error> {
    let mut latest = None;
    while let Some(found) = watch.next().await? {
        if let Some(on_progress) = &options.on_progress {
            let task: Response<VideoTask> = found.clone().parse(&RETRIEVE_VIDEO)?;
            on_progress(&task);
        }
        latest = Some(found);
    }
    latest.expect("a watch ends with the look-up that found the task completed").parse(&RETRIEVE_VIDEO)
}

/// What of a task's record matters here. Nothing else of it is read, so that nothing else can be in the way.
#[derive(Deserialize)]
struct Task {
    #[serde(default)]
    id: String,
    status: String,
    output: Option<Output>,
}

#[derive(Deserialize)]
struct Output {
    url: Option<String>,
}

impl Client {
    /// The raw form of `videos().generations().wait`, for front ends that parse the task themselves and want to
    /// hear of each look-up. `on_progress` is theirs to call.
    pub fn watch_video(&self, task_id: &str, options: &WaitOptions) -> VideoWatch {
        VideoWatch {
            client: self.clone(),
            task_id: task_id.to_owned(),
            schedule: Schedule::new(options),
            outcome: Outcome::Open,
        }
    }

    /// The raw form of `videos().generations().save`. task: the JSON of its record (2.7).
    ///
    /// Errors: InvalidRequest where it is none, too.
    pub async fn save_video(&self, task: &[u8], path: &Path, options: SaveOptions) -> Result<Saved, Error> {
        let Task { id, status, output } = serde_json::from_slice(task).map_err(|error| {
            Error::new(ErrorKind::InvalidRequest, "this is not the record of a video task")
                .quoting(&error)
                .caused_by(error)
                .shown(&self.redactor())
        })?;
        let url = output.and_then(|output| output.url);
        self.save_output(&id, &status, url.as_deref(), path, options).await
    }

    async fn save_output(
        &self,
        id: &str,
        status: &str,
        url: Option<&str>,
        path: &Path,
        options: SaveOptions,
    ) -> Result<Saved, Error> {
        let Some(url) = url else {
            let message =
                format!("video task {id} is {status} and has no video to save: wait until it is completed");
            return Err(Error::new(ErrorKind::InvalidRequest, message).shown(&self.redactor()));
        };
        self.save(url, path, options).await
    }
}

/// A wait, one look-up at a time. The deadline runs from its making.
pub struct VideoWatch {
    client: Client,
    task_id: String,
    schedule: Schedule,
    outcome: Outcome,
}

/// What the latest look-up said of the end.
enum Outcome {
    Open,
    Completed,
    /// With what the error is made of.
    Failed(RawResponse),
}

impl VideoWatch {
    /// Says that the gateway has just taken the task, so that a failure of the first look-up, too, is an outage to
    /// be outlived.
    #[must_use]
    pub fn submitted(mut self) -> Self {
        self.schedule.assume_answered();
        self
    }

    /// Whether the latest look-up found the task completed.
    pub fn is_completed(&self) -> bool {
        matches!(self.outcome, Outcome::Completed)
    }

    /// The task as the next look-up finds it, in whatever state; none after the one that found it completed. May be
    /// dropped and called again.
    ///
    /// Errors: TaskFailed after the one that found it failed; the others of `videos().generations().wait`.
    pub async fn next(&mut self) -> Result<Option<RawResponse>, Error> {
        match &self.outcome {
            Outcome::Open => {}
            Outcome::Completed => return Ok(None),
            Outcome::Failed(response) => return Err(task_failed(response)),
        }
        let Self { client, task_id, schedule, .. } = self;
        let what = format!("video task {task_id}");
        let look = || client.call(Call::new(&RETRIEVE_VIDEO).path("task_id", task_id.as_str()));
        let response =
            schedule.look_up(&what, look).await.map_err(|error| error.with_operation(&RETRIEVE_VIDEO))?;
        let task: Task = serde_json::from_slice(&response.body)
            .map_err(|error| response.undecodable(&RETRIEVE_VIDEO, error))?;
        self.outcome = match task.status.as_str() {
            "completed" => Outcome::Completed,
            "failed" => Outcome::Failed(response.clone()),
            _ => Outcome::Open,
        };
        Ok(Some(response))
    }
}

impl fmt::Debug for VideoWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VideoWatch").field("task_id", &self.task_id).finish_non_exhaustive()
    }
}

fn task_failed(response: &RawResponse) -> Error {
    let fallback = || "the task failed without a message".to_owned();
    Error::from_body(ErrorKind::TaskFailed, response.body.clone(), fallback)
        .with_operation(&RETRIEVE_VIDEO)
        .with_status(response.status)
        .with_request_id(response.request_id())
        .with_attempts(response.attempts)
        .shown(&response.secrets.redactor())
}
