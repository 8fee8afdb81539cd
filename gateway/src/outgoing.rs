//! Requests that the gateway sends.

mod names;
mod webhook;

pub(crate) use self::webhook::{Deliveries, Delivery, random_secret};
