//! State between requests, in memory and within limits: files, stored responses, idempotency replays and tasks.

mod files;
mod history;
mod replays;
mod tasks;

pub(crate) use self::files::{Files, Kind, LIFETIME, PREFIX, Room};
pub(crate) use self::history::{Documents, History};
pub(crate) use self::replays::{Begun, REPLAYED_HEADER, Replays, fingerprint};
pub(crate) use self::tasks::{Ahead, STOPPED, State, Task, Tasks};
