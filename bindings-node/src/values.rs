//! Converts values from JavaScript: times, counts, addresses, pairs of texts.

use std::time::Duration;

use gatewright::{ClientBuilder, Error, time_of_seconds};
use serde_json::{Map, Value};

use crate::error::misconfigured;

/// A proxy from its address; an empty one means none at all, whatever the environment says.
pub(crate) fn proxy(builder: ClientBuilder, address: &str) -> ClientBuilder {
    if address.is_empty() { builder.no_proxy() } else { builder.proxy(address) }
}

/// Members of a JSON object from its text.
pub(crate) fn members(name: &str, json: Option<String>) -> Result<Option<Map<String, Value>>, Error> {
    json.map(|json| {
        gatewright::members_of_json(json.as_bytes())
            .map_err(|error| misconfigured(format!("{name} cannot be sent: {error}")))
    })
    .transpose()
}

/// Pairs from a flat list.
pub(crate) fn pairs(flat: Vec<String>) -> Vec<(String, String)> {
    let mut words = flat.into_iter();
    std::iter::from_fn(|| Some((words.next()?, words.next()?))).collect()
}

/// A duration from JavaScript milliseconds; infinity means no limit.
pub(crate) fn duration(name: &str, milliseconds: Option<f64>) -> Result<Option<Duration>, Error> {
    milliseconds
        .map(|value| {
            time_of_seconds(value / 1000.0).ok_or_else(|| {
                misconfigured(format!("{name} must be a number of milliseconds above 0, not {value}"))
            })
        })
        .transpose()
}

/// A count from a JavaScript number, which may be anything.
pub(crate) fn count(name: &str, number: Option<f64>) -> Result<Option<u32>, Error> {
    number
        .map(|value| {
            let whole = value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
            whole
                .then_some(value as u32)
                .ok_or_else(|| misconfigured(format!("{name} must be a whole number from 0, not {value}")))
        })
        .transpose()
}

/// A size from a JavaScript number, which may be anything.
pub(crate) fn bytes(name: &str, number: Option<f64>) -> Result<Option<u64>, Error> {
    number
        .map(|bytes| {
            if bytes.is_nan() || bytes < 0.0 || (bytes.is_finite() && bytes.fract() != 0.0) {
                let message = format!("{name} must be a whole number of bytes from 0, not {bytes}");
                return Err(misconfigured(message));
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole, not negative, and beyond the largest one a bound is none"
            )]
            let bytes = bytes as u64;
            Ok(bytes)
        })
        .transpose()
}
