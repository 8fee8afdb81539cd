//! Determines from the usual headers whether an upstream's rate limit is about requests or tokens.

use http::HeaderMap;

/// Headers with the number of requests that are left, and with the number of tokens.
const REQUESTS_LEFT: &[&str] = &["x-ratelimit-remaining-requests", "anthropic-ratelimit-requests-remaining"];
const TOKENS_LEFT: &[&str] = &[
    "x-ratelimit-remaining-tokens",
    "anthropic-ratelimit-tokens-remaining",
    "anthropic-ratelimit-input-tokens-remaining",
    "anthropic-ratelimit-output-tokens-remaining",
];

/// The number of tokens that are left, if the response reports that requests are left: then tokens must have caused the
/// rejection.
pub(crate) fn tokens_left(headers: &HeaderMap) -> Option<u64> {
    let least = |names: &[&str]| names.iter().filter_map(|name| number(headers, name)).min();
    least(REQUESTS_LEFT).filter(|left| *left > 0).and(least(TOKENS_LEFT))
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn of(headers: &[(&'static str, &'static str)]) -> Option<u64> {
        let header = |(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        tokens_left(&headers.iter().copied().map(header).collect())
    }

    #[test]
    fn rate_limit_counts_tokens_while_requests_remain() {
        let requests = ("x-ratelimit-remaining-requests", "7");
        assert_eq!(of(&[requests, ("x-ratelimit-remaining-tokens", "120")]), Some(120));
        let others = [
            ("anthropic-ratelimit-requests-remaining", "7"),
            ("anthropic-ratelimit-input-tokens-remaining", "9000"),
            ("anthropic-ratelimit-output-tokens-remaining", "400"),
        ];
        assert_eq!(of(&others), Some(400), "the scarcest");
    }

    #[test]
    fn rate_limit_without_remaining_requests_has_no_tokens() {
        let tokens = ("x-ratelimit-remaining-tokens", "120");
        for requests in ["0", "-1", "many"] {
            assert_eq!(of(&[("x-ratelimit-remaining-requests", requests), tokens]), None, "{requests}");
        }
        assert_eq!(of(&[tokens]), None);
        assert_eq!(of(&[("x-ratelimit-remaining-requests", "7")]), None);
    }
}
