//! Waiting for a video task, one look-up at a time: what is done with what each finds is JavaScript's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gatewright::{Error, WaitOptions};
use napi::Env;
use napi::bindgen_prelude::{Either, PromiseRaw};
use napi_derive::napi;
use tokio::sync::Mutex;

use crate::client::{Answer, Cancellation, Client, answer, document};
use crate::error::describe;
use crate::options::duration;

/// A wait for a video task. Times in milliseconds; what is missing has the core's default.
#[napi(object, object_to_js = false)]
pub struct Wait {
    /// Id of the task.
    pub task_id: String,
    /// Pause between two look-ups.
    pub interval_ms: Option<f64>,
    /// Bounds the whole wait.
    pub timeout_ms: Option<f64>,
    /// Whether the gateway has just taken the task.
    pub submitted: bool,
}

impl Wait {
    fn begin(self, client: &gatewright::Client) -> Result<gatewright::VideoWatch, Error> {
        let mut options = WaitOptions::default();
        options.interval = duration("intervalMs", self.interval_ms)?.unwrap_or(options.interval);
        options.timeout = duration("timeoutMs", self.timeout_ms)?.unwrap_or(options.timeout);
        let watch = client.watch_video(&self.task_id, &options);
        Ok(if self.submitted { watch.submitted() } else { watch })
    }
}

/// A wait that has begun.
#[napi(js_name = "NativeWatch")]
pub struct VideoWatch {
    watch: Arc<Mutex<gatewright::VideoWatch>>,
    completed: Arc<AtomicBool>,
}

#[napi]
impl Client {
    /// Begins a wait, or tells as JSON why it cannot.
    #[napi]
    pub fn watch_video(&self, wait: Wait) -> Either<VideoWatch, String> {
        match gatewright::contain(|| wait.begin(&self.client)) {
            Ok(watch) => {
                Either::A(VideoWatch { watch: Arc::new(Mutex::new(watch)), completed: Arc::default() })
            }
            Err(error) => Either::B(describe(&error)),
        }
    }
}

#[napi]
impl VideoWatch {
    /// Whether the latest look-up found the task completed.
    #[napi(getter)]
    pub fn completed(&self) -> bool {
        self.completed.load(Ordering::Acquire)
    }

    /// The task as the next look-up finds it; not to be called once it is completed. Never rejects.
    #[napi]
    pub fn next<'env>(
        &self,
        env: &'env Env,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<PromiseRaw<'env, Answer>> {
        let (watch, completed) = (Arc::clone(&self.watch), Arc::clone(&self.completed));
        answer(env, cancellation, async move {
            let mut watch = watch.lock().await;
            let found = watch.next().await?;
            completed.store(watch.is_completed(), Ordering::Release);
            Ok(found.map(document).unwrap_or_default())
        })
    }
}
