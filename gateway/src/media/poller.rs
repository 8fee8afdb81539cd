//! Follows a video at its upstream: polls until it is finished or has failed, and fetches its file. Temporary failures of the
//! upstream are retried until the video's deadline.

use std::sync::Arc;
use std::time::Duration;

use gatewright_protocol::conversation::Failure;
use gatewright_protocol::{Finished, VideoStage};
use gatewright_store::{Output, StoredFile, Task, TaskError, TaskState};
use gatewright_system::clock::unix_seconds;
use tokio::time::Instant;

use super::downloader::fetch;
use super::video_params::VideoParams;
use crate::app::App;
use crate::relay::{AttemptFailure, DownloadError, FailureClass, Remote};
use crate::storage::FileReservation;
use crate::tasks::{LeaseGuard, VideoInProgress};

/// Longest pause that the gateway chooses by itself.
const MAX_PAUSE: Duration = Duration::from_mins(1);
/// How often in a row an upstream may report that it has no such video.
const MAX_REFUSALS: u32 = 3;
/// Maximum number of attempts to fetch a file.
const MAX_FETCHES: u32 = 5;

/// A video in progress at an upstream.
pub(super) struct PolledVideo<'a> {
    app: &'a Arc<App>,
    task: &'a Task,
    lease: &'a LeaseGuard,
    remote: Remote,
    params: VideoParams,
    /// Space for the file.
    room: Option<FileReservation>,
    deadline: Instant,
    /// The last failure.
    trouble: Option<String>,
    /// Counts it among the videos in progress at its upstream.
    under_way: Option<VideoInProgress>,
    /// When its upstream started working on it, as a Unix time in seconds.
    began: Option<u64>,
}

impl<'a> PolledVideo<'a> {
    pub(super) fn new(
        app: &'a Arc<App>,
        task: &'a Task,
        lease: &'a LeaseGuard,
        remote: Remote,
        params: VideoParams,
        room: Option<FileReservation>,
        under_way: VideoInProgress,
    ) -> Self {
        let (deadline, under_way) = (Instant::now(), Some(under_way));
        Self { app, task, lease, remote, params, room, deadline, trouble: None, under_way, began: None }
    }

    /// Follows the video to its final state. `first`: the stage that the upstream reported when it accepted the video.
    pub(super) async fn run(mut self, first: VideoStage, deadline: Instant) -> TaskState {
        self.deadline = deadline;
        tokio::time::timeout_at(deadline, self.end(first)).await.unwrap_or_else(|_| {
            let trouble = self.trouble.map(|trouble| format!("; the last problem: {trouble}"));
            let trouble = trouble.unwrap_or_default();
            let limit = self.app.config.video_timeout;
            TaskState::failed(format!("there was no video within {limit:?}{trouble}"))
        })
    }

    async fn end(&mut self, first: VideoStage) -> TaskState {
        let (mut reported, mut before) = (first, None);
        loop {
            let state = match reported {
                VideoStage::Done(finished) => {
                    self.note_time();
                    return self.fetch(&finished).await;
                }
                VideoStage::Failed(failure) => return self.failed(failure),
                // A provider may put a video back into its queue, but the state that clients see only moves forward (3).
                VideoStage::Waiting if before != Some(TaskState::Processing) => TaskState::Pending,
                VideoStage::Waiting | VideoStage::Working => TaskState::Processing,
            };
            if before.as_ref() != Some(&state) {
                self.note_stage(&state, before.is_none());
                self.lease.advance(&state).await;
                before = Some(state);
            }
            reported = match self.look_up().await {
                Ok(next) => next,
                Err(lost) => return TaskState::failed(lost),
            };
        }
    }

    /// Records whether the video is queued at its upstream. `first`: whether this is the state at acceptance.
    fn note_stage(&mut self, state: &TaskState, first: bool) {
        let Some(under_way) = &mut self.under_way else { return };
        if *state == TaskState::Pending {
            return under_way.waits();
        }
        under_way.works();
        self.began.get_or_insert_with(|| if first { self.task.created } else { unix_seconds() });
    }

    /// The upstream has finished the video: adds its time to the estimates, excluding the queue as far as that is known.
    fn note_time(&mut self) {
        self.under_way = None;
        let began = self.began.unwrap_or(self.task.created);
        let took = Duration::from_secs(unix_seconds().saturating_sub(began));
        self.app.task_runner.schedule.estimates.took(&self.task.model, self.params.duration_s, took);
    }

    /// The next stage that the upstream reports. Errors: it has no such video.
    async fn look_up(&mut self) -> Result<VideoStage, String> {
        let (mut pause, mut refusals) = (self.app.config.video_poll, 0);
        loop {
            tokio::time::sleep(jittered(pause)).await;
            let turn = self.app.task_runner.schedule.look_ups.acquire().await;
            let report = self.remote.look_up(&self.app.live.routes.load_full()).await;
            drop(turn);
            let failure = match report {
                Ok(report) => return Ok(report.stage),
                Err(failure) => failure,
            };
            refusals = if failure.class == FailureClass::Request { refusals + 1 } else { 0 };
            let message = self.note(&failure);
            if refusals == MAX_REFUSALS {
                return Err(format!("the provider no longer finds the video: {message}"));
            }
            pause = longer(pause, failure.retry_after);
        }
    }

    /// Fetches the file. Its upstream URL isn't passed on: it may require the key, be internal, or expire.
    async fn fetch(&mut self, finished: &Finished) -> TaskState {
        let (mut pause, mut failures) = (self.app.config.video_poll, 0);
        loop {
            let turn = self.app.task_runner.schedule.fetches.acquire().await;
            let (owner, room) = (&self.task.owner, &mut self.room);
            let fetched = fetch(self.app, owner, &self.remote, finished, room, self.deadline).await;
            drop(turn);
            let retry_after = match fetched {
                Ok(file) => return self.completed(finished, file),
                Err(DownloadError::Never(why)) => return TaskState::failed(why),
                Err(DownloadError::NoRoom(why)) => {
                    self.trouble = Some(why.to_string());
                    None
                }
                Err(DownloadError::Failed(failure)) => {
                    failures += 1;
                    let message = self.note(&failure);
                    if failures == MAX_FETCHES {
                        return TaskState::failed(format!(
                            "the file of the video could not be fetched: {message}"
                        ));
                    }
                    failure.retry_after
                }
            };
            pause = longer(pause, retry_after);
            tokio::time::sleep(jittered(pause)).await;
        }
    }

    /// What the upstream doesn't report about the video is taken from the request.
    fn completed(&self, finished: &Finished, file: StoredFile) -> TaskState {
        let VideoParams { duration_s, size } = self.params;
        TaskState::Completed(Output {
            file,
            duration_s: finished.film.duration_s.unwrap_or(duration_s),
            size: finished.film.size.unwrap_or((size.0.into(), size.1.into())),
        })
    }

    fn failed(&self, failure: Failure) -> TaskState {
        let failure = AttemptFailure::of_event(failure, &self.remote.provider.endpoint.redactor);
        let Failure { message, code, .. } = failure.cause().clone();
        match code {
            Some(code) => TaskState::Failed(TaskError { message, code }),
            None => TaskState::failed(message),
        }
    }

    /// Records a failure. The log omits the upstream's text, which may contain anything.
    fn note(&mut self, failure: &AttemptFailure) -> String {
        let upstream = &*self.remote.provider.endpoint.name;
        tracing::warn!(task = self.task.id, upstream, reason = ?failure.class, "polling a video failed");
        let message = failure.cause().message.clone();
        self.trouble = Some(message.clone());
        message
    }
}

/// The pause after a failure.
fn longer(pause: Duration, retry_after: Option<Duration>) -> Duration {
    (pause * 2).min(MAX_PAUSE.max(pause)).max(retry_after.unwrap_or_default())
}

/// Varies the pause by up to a fifth, so that polls don't coincide.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::random_range(0.8..1.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poll_interval_grows_to_a_minute_or_to_retry_after() {
        let seconds = Duration::from_secs;
        assert_eq!(longer(seconds(5), None), seconds(10));
        assert_eq!(longer(seconds(50), None), seconds(60));
        // The configured pause applies, even if it is longer.
        assert_eq!(longer(seconds(600), None), seconds(600));
        assert_eq!(longer(seconds(5), Some(seconds(90))), seconds(90));
        for _ in 0..100 {
            assert!((4_000..=6_000).contains(&jittered(seconds(5)).as_millis()));
        }
    }
}
