//! Waits for a video task, one poll at a time; JavaScript handles the results.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gatewright::{Error, operations};
use napi::Env;
use napi::bindgen_prelude::Either;
use napi_derive::napi;
use tokio::sync::Mutex;

use crate::answer::{Cancellation, answer, document};
use crate::client::Client;
use crate::deliveries::{PendingDelivery, Receiver};
use crate::error::describe;
use crate::generated::options::WaitOptions;
use crate::worker::StartThread;

/// A wait for a video task.
#[napi(object, object_to_js = false)]
pub struct Wait {
    /// Id of the task.
    pub task_id: String,
    /// Whether the gateway has just accepted the task.
    pub submitted: bool,
    /// The options of the wait.
    pub options: WaitOptions,
}

impl Wait {
    fn begin(self, client: &gatewright::Client) -> Result<gatewright::VideoWatch, Error> {
        let watch = client.watch_video(&self.task_id, &self.options.into_core()?);
        Ok(if self.submitted { watch.submitted() } else { watch })
    }
}

/// A wait in progress.
#[napi(js_name = "EngineWatch")]
pub struct VideoWatch {
    receiver: Arc<Receiver>,
    watch: Arc<Mutex<gatewright::VideoWatch>>,
    completed: Arc<AtomicBool>,
}

#[napi]
impl Client {
    /// Starts a wait, or returns as JSON why that fails.
    #[napi]
    pub fn watch_video(&self, wait: Wait) -> Either<VideoWatch, String> {
        match gatewright::contain(|| wait.begin(&self.client)) {
            Ok(watch) => Either::A(VideoWatch {
                receiver: self.receiver(),
                watch: Arc::new(Mutex::new(watch)),
                completed: Arc::default(),
            }),
            Err(error) => Either::B(describe(&error)),
        }
    }
}

#[napi]
impl VideoWatch {
    /// Whether the task was completed at the latest poll.
    #[napi(getter)]
    pub fn completed(&self) -> bool {
        self.completed.load(Ordering::Acquire)
    }

    /// Delivers the task at the next poll; do not call this after it is completed. `number`: of the delivery.
    #[napi]
    pub fn next(&self, env: Env, number: u32, cancellation: Option<&Cancellation>) -> napi::Result<()> {
        let (watch, completed) = (Arc::clone(&self.watch), Arc::clone(&self.completed));
        let waiting = PendingDelivery { receiver: Arc::clone(&self.receiver), number };
        answer(env, waiting, cancellation, StartThread::Worker, async move {
            let mut watch = watch.lock().await;
            let found = watch.next().await?;
            completed.store(watch.is_completed(), Ordering::Release);
            let task = found.map(|task| document(&operations::RETRIEVE_VIDEO, &task)).transpose()?;
            Ok(task.unwrap_or_default())
        })
    }
}
