//! The video tasks that this process works on: their leases, and who may work when.

mod crew;
mod estimates;
mod schedule;

pub(crate) use self::crew::{Crew, Held, STOPPED};
pub(crate) use self::estimates::UnderWay;
pub(crate) use self::schedule::Ahead;
