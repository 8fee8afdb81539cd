//! Promises for blocking work, which ends with the JavaScript thread that wants it. The runtime that does the work is
//! shared by all threads of the process, and would continue. Requests and streams are in worker.rs.

use std::cell::RefCell;

use gatewright::Error;
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, ToNapiValue};
use tokio::sync::watch;

use crate::error::{cancelled, describe};

thread_local! {
    /// Resolves when this thread's environment is torn down.
    static ENDED: RefCell<Option<watch::Receiver<bool>>> = const { RefCell::new(None) };
}

/// The value of a promise, also used in place of a rejection.
pub(crate) trait PromiseValue: Default {
    /// With a failure as JSON.
    fn failed(error: String) -> Self;
}

/// A promise of the result of `work`. It never rejects: a failure or panic becomes a value.
fn spawn<T: PromiseValue + Send + ToNapiValue + 'static>(
    env: &Env,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> napi::Result<PromiseRaw<'_, T>> {
    let mut ended = ended(*env)?;
    env.spawn_future(async move {
        Ok(tokio::select! {
            biased;
            // No code receives this: any value will do.
            _ = ended.wait_for(|ended| *ended) => T::default(),
            outcome = gatewright::contained(work) => {
                outcome.unwrap_or_else(|error| T::failed(describe(&error)))
            }
        })
    })
}

/// Like [`spawn`], for blocking work, on a thread that may block. A panic of it is its failure, without the panic's
/// message.
pub(crate) fn spawn_blocking<T: PromiseValue + Send + ToNapiValue + 'static>(
    env: &Env,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> napi::Result<PromiseRaw<'_, T>> {
    spawn(env, async move {
        let done = tokio::task::spawn_blocking(move || gatewright::contain(work)).await;
        // The only remaining cause is that the runtime ends.
        done.unwrap_or_else(|_| Err(cancelled("the process ends")))
    })
}

/// Signals the end of the thread's environment. Registers for it on first use per thread.
fn ended(env: Env) -> napi::Result<watch::Receiver<bool>> {
    ENDED.with_borrow_mut(|known| {
        if let Some(ended) = known {
            return Ok(ended.clone());
        }
        let (sender, ended) = watch::channel(false);
        env.add_env_cleanup_hook(sender, |sender| {
            sender.send_replace(true);
            // A thread may get another environment.
            ENDED.with_borrow_mut(Option::take);
        })?;
        *known = Some(ended.clone());
        Ok(ended)
    })
}
