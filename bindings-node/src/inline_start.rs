//! Work that begins on a thread other than the worker. It becomes a task of the worker when it is woken.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

use tokio::runtime::Handle;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Such work.
pub(crate) struct InlineTask {
    runtime: Handle,
    state: Mutex<TaskState>,
}

enum TaskState {
    /// The thread that it began on is running it.
    Beginning {
        woken: bool,
    },
    Waiting(Work),
    /// The worker has it, or it has ended.
    Passed,
}

impl InlineTask {
    /// Begins work on this thread.
    pub(crate) fn begin(runtime: Handle, mut work: Work) {
        let started = Arc::new(Self { runtime, state: Mutex::new(TaskState::Beginning { woken: false }) });
        let waker = Waker::from(Arc::clone(&started));
        let _entered = started.runtime.enter();
        // Like a task, it ends if it panics.
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut Context::from_waker(&waker))));
        if !polled.is_ok_and(|polled| polled.is_pending()) {
            *started.state() = TaskState::Passed;
            return;
        }
        let mut state = started.state();
        if let TaskState::Beginning { woken: false } = *state {
            *state = TaskState::Waiting(work);
        } else {
            *state = TaskState::Passed;
            drop(state);
            started.runtime.spawn(work);
        }
    }

    fn state(&self) -> MutexGuard<'_, TaskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for InlineTask {
    fn wake(self: Arc<Self>) {
        let mut state = self.state();
        match &mut *state {
            TaskState::Beginning { woken } => *woken = true,
            TaskState::Waiting(_) => {
                let waiting = std::mem::replace(&mut *state, TaskState::Passed);
                drop(state);
                if let TaskState::Waiting(work) = waiting {
                    self.runtime.spawn(work);
                }
            }
            TaskState::Passed => {}
        }
    }
}
