//! Waiting for a video task, typed and raw, and saving its video. The operations themselves are
//! generated.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use crate::api::operations::RETRIEVE_VIDEO;
use crate::api::types::{VideoGenerationRequest, VideoTask};
use crate::client::Client;
use crate::client::resources::VideosGenerations;
use crate::jobs::files::Saved;
use crate::jobs::generated::options::{SaveOptions, WaitOptions};
use crate::jobs::polling::Schedule;
use crate::transport::options::Call;
use crate::transport::response::{RawResponse, Response};
use crate::wire::error::{Error, ErrorKind};

impl WaitOptions {
    /// These options with a function to call at each poll.
    ///
    /// ```
    /// use gatewright::WaitOptions;
    ///
    /// let options = WaitOptions::default().on_progress(|task| println!("{}", task.status.as_str()));
    /// ```
    #[must_use]
    pub fn on_progress(mut self, on_progress: impl Fn(&VideoTask) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(on_progress));
        self
    }
}

impl fmt::Debug for WaitOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitOptions")
            .field("interval", &self.interval)
            .field("timeout", &self.timeout)
            .field("on_progress", &self.on_progress.as_ref().map(|_| "…"))
            .finish()
    }
}

impl VideosGenerations<'_> {
    /// Polls a task until it is completed or failed, and returns the completed task. All other states, including
    /// unknown ones, count as in progress.
    ///
    /// After the first answered poll, temporary failures do not end the wait (no connection, a timeout, 408, 409,
    /// 429, 5xx except 501, each after the client's own retries): it keeps polling until the deadline.
    ///
    /// Errors: TaskFailed with the task's own message and record; Timeout, with the latest failure as its source
    /// if there was one; the errors of a poll.
    ///
    /// Source: sections 2.7 and 3 of the specification.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use std::time::Duration;
    ///
    /// use gatewright::WaitOptions;
    ///
    /// let options = WaitOptions { timeout: Duration::from_secs(600), ..WaitOptions::default() };
    /// let task = client.videos().generations().wait("video_1", options).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait(&self, task_id: &str, options: WaitOptions) -> Result<Response<VideoTask>, Error> {
        finish(self.client.watch_video(task_id, &options), &options).await
    }

    /// Submits a task and waits for it. Errors: those of `create`, then those of `wait`.
    ///
    /// Source: sections 2.6, 2.7 and 3 of the specification.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::types::VideoGenerationRequest;
    /// use gatewright::{SaveOptions, WaitOptions};
    ///
    /// let videos = client.videos();
    /// let request = VideoGenerationRequest::new("video_model_1", "A boat at sea.");
    /// let task = videos.generations().create_and_wait(&request, WaitOptions::default()).await?;
    /// videos.generations().save(&task, "boat.mp4", SaveOptions::default()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_and_wait(
        &self,
        body: &VideoGenerationRequest,
        options: WaitOptions,
    ) -> Result<Response<VideoTask>, Error> {
        let task = self.create(body).await?;
        finish(self.client.watch_video(&task.id, &options).submitted(), &options).await
    }

    /// Saves the video of a completed task: [`Client::save`] for its `output.url`.
    ///
    /// Errors: InvalidRequest if the task has no video (yet); those of [`Client::save`].
    ///
    /// Source: sections 2.7 and 4 of the specification.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::SaveOptions;
    ///
    /// let task = client.videos().generations().retrieve("video_1").await?;
    /// client.videos().generations().save(&task, "boat.mp4", SaveOptions::default()).await?;
    /// # Ok(())
    /// # }
    /// ```
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

/// The parts of a task's record that are needed here. Nothing else is read, so that no other member can cause an error.
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
    /// The raw form of `videos().generations().wait`, for front ends that parse the task themselves and want to see the
    /// result of each poll. Calling `on_progress` is up to them.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use std::time::Duration;
    ///
    /// use gatewright::WaitOptions;
    ///
    /// let options = WaitOptions { interval: Duration::from_secs(1), ..WaitOptions::default() };
    /// let mut watch = client.watch_video("video_1", &options);
    /// let task = watch.next().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch_video(&self, task_id: &str, options: &WaitOptions) -> VideoWatch {
        VideoWatch {
            client: self.clone(),
            task_id: task_id.to_owned(),
            schedule: Schedule::new(options.interval, options.timeout),
            end: TaskOutcome::Open,
        }
    }

    /// The raw form of `videos().generations().save`. task: the JSON of its record.
    ///
    /// Errors: also InvalidRequest if it is not the record of a task.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::operations::RETRIEVE_VIDEO;
    /// use gatewright::{Call, SaveOptions};
    ///
    /// let task = client.call(Call::new(&RETRIEVE_VIDEO).path("task_id", "video_1")).await?;
    /// client.save_video(&task.body, "boat.mp4".as_ref(), SaveOptions::default()).await?;
    /// # Ok(())
    /// # }
    /// ```
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

/// A wait that makes one poll at a time. The deadline counts from its creation.
///
/// ```no_run
/// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
/// use gatewright::WaitOptions;
///
/// let mut watch = client.watch_video("video_1", &WaitOptions::default());
/// while let Some(task) = watch.next().await? {
///     println!("{}", String::from_utf8_lossy(&task.body));
/// }
/// assert!(watch.is_completed());
/// # Ok(())
/// # }
/// ```
pub struct VideoWatch {
    client: Client,
    task_id: String,
    schedule: Schedule,
    end: TaskOutcome,
}

/// How the task ended, according to the latest poll.
enum TaskOutcome {
    Open,
    Completed,
    /// Failed, with the response that the error is made from.
    Failed(RawResponse),
}

impl VideoWatch {
    /// States that the gateway has just accepted the task, so that even a failure of the first poll is treated as an
    /// outage.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::WaitOptions;
    /// use gatewright::types::VideoGenerationRequest;
    ///
    /// let request = VideoGenerationRequest::new("video_model_1", "A boat at sea.");
    /// let task = client.videos().generations().create(&request).await?;
    /// let mut watch = client.watch_video(&task.id, &WaitOptions::default()).submitted();
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn submitted(mut self) -> Self {
        self.schedule.assume_answered();
        self
    }

    /// Whether the latest poll found the task completed.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// let mut watch = client.watch_video("video_1", &gatewright::WaitOptions::default());
    /// let task = watch.next().await?;
    /// if watch.is_completed() {
    ///     println!("{}", String::from_utf8_lossy(&task.expect("completed just now").body));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_completed(&self) -> bool {
        matches!(self.end, TaskOutcome::Completed)
    }

    /// The task as returned by the next poll, in any state; none after the poll that found it completed. May be dropped
    /// and called again.
    ///
    /// Errors: TaskFailed after the poll that found it failed; the others of `videos().generations().wait`.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// let mut watch = client.watch_video("video_1", &gatewright::WaitOptions::default());
    /// while let Some(task) = watch.next().await? {
    ///     println!("{}", String::from_utf8_lossy(&task.body));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next(&mut self) -> Result<Option<RawResponse>, Error> {
        match &self.end {
            TaskOutcome::Open => {}
            TaskOutcome::Completed => return Ok(None),
            TaskOutcome::Failed(response) => return Err(task_failed(response)),
        }
        let Self { client, task_id, schedule, .. } = self;
        let what = format!("video task {task_id}");
        let look = || client.call(Call::new(&RETRIEVE_VIDEO).path("task_id", task_id.as_str()));
        let response =
            schedule.look_up(&what, look).await.map_err(|error| error.with_operation(&RETRIEVE_VIDEO))?;
        let task: Task = response.read(&RETRIEVE_VIDEO, |body| serde_json::from_slice(body))?;
        self.end = match task.status.as_str() {
            "completed" => TaskOutcome::Completed,
            "failed" => TaskOutcome::Failed(response.clone()),
            _ => TaskOutcome::Open,
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// 3: the announced example waits 5 seconds between polls.
    #[test]
    fn default_polling_interval_matches_the_specification() {
        assert_eq!(WaitOptions::default().interval, Duration::from_secs(5));
    }
}
