//! The headers with the remaining limits per minute, under the names of 2.12. Their values are ours, since the source does
//! not show any: numbers, and for `reset` the seconds until the full limit is available again, such as `42s`.

use std::sync::LazyLock;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::usage::{Caller, Remaining};

/// For requests and for tokens: limit, remaining, reset.
const NAMES: [[HeaderName; 3]; 2] = [
    [
        HeaderName::from_static("x-ratelimit-limit-requests"),
        HeaderName::from_static("x-ratelimit-remaining-requests"),
        HeaderName::from_static("x-ratelimit-reset-requests"),
    ],
    [
        HeaderName::from_static("x-ratelimit-limit-tokens"),
        HeaderName::from_static("x-ratelimit-remaining-tokens"),
        HeaderName::from_static("x-ratelimit-reset-tokens"),
    ],
];

/// The values of `reset` for each second of a minute: none of these limits takes longer to refill.
static RESETS: LazyLock<Vec<Option<HeaderValue>>> =
    LazyLock::new(|| (0..=60).map(|seconds| HeaderValue::try_from(format!("{seconds}s")).ok()).collect());

/// All names, for web pages that read them (CORS).
pub(super) fn names() -> impl Iterator<Item = HeaderName> {
    NAMES.into_iter().flatten()
}

/// Writes the headers for the limits that the key has.
pub(super) fn write(caller: &Caller, headers: &mut HeaderMap) {
    let allowance = caller.allowance();
    let limits = caller.limits();
    let [requests, tokens] = NAMES;
    headers.reserve(NAMES.len() * NAMES[0].len());
    one(headers, requests, limits.requests_per_minute, allowance.requests);
    one(headers, tokens, limits.tokens_per_minute, allowance.tokens);
}

fn one(headers: &mut HeaderMap, names: [HeaderName; 3], limit: Option<u64>, left: Option<Remaining>) {
    let Some((limit, left)) = limit.zip(left) else { return };
    let seconds = usize::try_from(left.full.as_millis().div_ceil(1000)).unwrap_or(usize::MAX);
    let [name_of_limit, name_of_remaining, name_of_reset] = names;
    headers.insert(name_of_limit, limit.into());
    headers.insert(name_of_remaining, left.remaining.into());
    if let Some(reset) = RESETS[seconds.min(RESETS.len() - 1)].clone() {
        headers.insert(name_of_reset, reset);
    }
}
