//! The video tasks that this process works on: their leases, and the schedule of the work.

mod estimates;
mod schedule;
mod task_runner;

pub(crate) use self::estimates::UnderWay;
pub(crate) use self::schedule::Ahead;
pub(crate) use self::task_runner::{Held, STOPPED, TaskRunner};
