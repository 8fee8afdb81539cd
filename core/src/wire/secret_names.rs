//! Decides which names of headers and query parameters stand for secrets: the only place that does.

use std::borrow::Cow;

/// Whether the value of a header or query parameter of this name is treated as a secret.
///
/// ```
/// assert!(gatewright::is_secret_name("Authorization"));
/// assert!(!gatewright::is_secret_name("content-type"));
/// ```
pub fn is_secret_name(name: &str) -> bool {
    const WORDS: [&str; 6] = ["auth", "cookie", "credential", "passw", "secret", "signature"];

    // Every request and most responses carry these: one comparison settles them before any search.
    if matches!(
        name,
        "accept"
            | "accept-encoding"
            | "content-length"
            | "content-type"
            | "idempotency-key"
            | "user-agent"
            | "x-gatewright-retry-count"
    ) {
        return false;
    }
    // Header names are already in lower case.
    let is_lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
    let name = if is_lower { Cow::Borrowed(name) } else { Cow::Owned(name.to_ascii_lowercase()) };
    // A challenge asks for a secret and contains none.
    let is_challenge = name.ends_with("-authenticate");
    // The plural is a count: `x-ratelimit-remaining-tokens`.
    let is_token = name.match_indices("token").any(|(at, word)| !name[at + word.len()..].starts_with('s'));
    let is_key = name.ends_with("key") && name != "idempotency-key";
    !is_challenge && WORDS.iter().any(|word| name.contains(word)) || is_token || is_key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_headers_are_distinguished_from_challenges_and_counters() {
        for name in
            ["Authorization", "x-api-key", "x-goog-api-key", "key", "Cookie", "x-auth-token", "password"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in
            ["idempotency-key", "www-authenticate", "x-ratelimit-remaining-tokens", "x-request-id", "date"]
        {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
