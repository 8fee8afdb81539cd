//! Requests that the gateway sends.

mod delivery_stats;
mod fetch;
mod outbox;
mod sender;
mod ssrf_guard;

pub(crate) use self::fetch::Fetcher;
pub(crate) use self::outbox::{Outbox, notice};
