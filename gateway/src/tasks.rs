//! The video tasks that this process works on: their leases, and the schedule of the work.

mod estimates;
mod schedule;
mod task_runner;

pub(crate) use self::estimates::VideoInProgress;
#[cfg(test)]
pub(crate) use self::schedule::MAX_LOOK_UPS;
pub(crate) use self::schedule::QueuedVideo;
pub(crate) use self::task_runner::{LeaseGuard, STOPPED, TaskRunner};
