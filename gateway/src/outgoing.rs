//! Requests that the gateway sends.

mod fetch;
mod known;
mod names;
mod outbox;
mod sender;

pub(crate) use self::fetch::Fetcher;
pub(crate) use self::outbox::{Outbox, notice};
