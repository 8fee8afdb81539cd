//! Requests that the gateway sends.

mod fetch;
mod names;
mod webhook;

pub(crate) use self::fetch::Fetcher;
pub(crate) use self::webhook::{Deliveries, Delivery, random_secret};
