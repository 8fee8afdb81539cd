//! Waiting for a video task (section 3), typed and raw, and a short way to write its request. The operations
//! themselves are generated.

use serde::Deserialize;

use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::operations::RETRIEVE_VIDEO;
use crate::options::Call;
use crate::polling::{Progress, WaitOptions, until_done};
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
    /// Errors: TaskFailed with the task's own message (2.7), Timeout, those of the look-up.
    ///
    /// Source: 2.7, 3.
    pub async fn wait(&self, task_id: &str, options: WaitOptions) -> Result<Response<VideoTask>, Error> {
        self.client.wait_for_video(task_id, options).await?.parse(&RETRIEVE_VIDEO)
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
        self.wait(&task.id, options).await
    }
}

impl Client {
    /// The raw form of `videos().generations().wait`, for front ends that parse the task themselves.
    pub async fn wait_for_video(&self, task_id: &str, options: WaitOptions) -> Result<RawResponse, Error> {
        let what = format!("video task {task_id}");
        let looked_up = until_done(&what, options, || {
            let call = Call::new(&RETRIEVE_VIDEO).path("task_id", task_id);
            async move { progress(self.call(call).await?) }
        });
        looked_up.await.map_err(|error| error.with_operation(&RETRIEVE_VIDEO))
    }
}

fn progress(response: RawResponse) -> Result<Progress<RawResponse>, Error> {
    #[derive(Deserialize)]
    struct Task {
        status: String,
    }

    let task: Task = serde_json::from_slice(&response.body)
        .map_err(|error| response.undecodable(&RETRIEVE_VIDEO, error))?;
    match task.status.as_str() {
        "completed" => Ok(Progress::Done(response)),
        "failed" => {
            let request_id = response.request_id().map(str::to_owned);
            let fallback = || "the task failed without a message".to_owned();
            Err(Error::from_body(ErrorKind::TaskFailed, response.body, fallback)
                .with_status(response.status)
                .with_request_id(request_id.as_deref())
                .with_attempts(response.attempts))
        }
        _ => Ok(Progress::UnderWay),
    }
}
