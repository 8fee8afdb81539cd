//! The id of the end user on whose behalf a request is made.

use std::borrow::Cow;
use std::fmt::Write as _;

use ring::digest::{SHA256, digest};

use super::members::Members;
use crate::conversation::Located;

/// The field with the id in requests of chat and responses.
pub(super) const USER: &str = "user";
/// Its newer name.
const SAFETY_IDENTIFIER: &str = "safety_identifier";
/// Maximum length of the id at chat completions and responses providers, in characters.
pub(super) const MAX_USER: usize = 64;

/// Minimum number of digits of a telephone number.
const SHORTEST_NUMBER: usize = 7;

/// Takes the id of a request of chat or responses.
pub(super) fn read(body: &mut Members) -> Option<Located<String>> {
    body.given(USER, Members::text).or_else(|| body.given(SAFETY_IDENTIFIER, Members::text))
}

/// The field in which a chat or responses client wrote the id; the older one for clients of other protocols.
pub(super) fn member(user: &Located<String>) -> &'static str {
    if user.at.strip_prefix('/') == Some(SAFETY_IDENTIFIER) { SAFETY_IDENTIFIER } else { USER }
}

/// The id as a provider accepts it: one that is too long is replaced by its digest, which is stable per user.
pub(super) fn id(user: &str, most: usize) -> Cow<'_, str> {
    if user.len() <= most || user.chars().count() <= most {
        return Cow::Borrowed(user);
    }
    let mut text = String::with_capacity(MAX_USER);
    for byte in digest(&SHA256, user.as_bytes()).as_ref() {
        // Writing to a string never fails.
        _ = write!(text, "{byte:02x}");
    }
    Cow::Owned(text)
}

/// The id as a provider accepts it that rejects e-mail addresses and telephone numbers: in place of one, its digest.
pub(super) fn id_without_contact(user: &str, most: usize) -> Cow<'_, str> {
    let is_number = user.chars().all(|letter| letter.is_ascii_digit() || "+-(). ".contains(letter))
        && user.chars().filter(char::is_ascii_digit).count() >= SHORTEST_NUMBER;
    id(user, if user.contains('@') || is_number { 0 } else { most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_user_id_becomes_a_stable_digest() {
        let long = "u".repeat(65);
        assert_eq!(id(&long, MAX_USER), id(&long, MAX_USER));
        assert_eq!(id(&long, MAX_USER).len(), MAX_USER);
        assert_ne!(id(&long, MAX_USER), id(&"v".repeat(65), MAX_USER));
        assert_eq!(id(&"ü".repeat(64), MAX_USER), "ü".repeat(64));
        assert_eq!(id(&long, usize::MAX), long);
    }

    #[test]
    fn address_or_number_of_a_user_becomes_a_digest_where_providers_reject_it() {
        for contact in ["jane@example.com", "+1 (555) 010-9999", "5550109999"] {
            assert_eq!(id_without_contact(contact, 256), id(contact, 0), "{contact}");
        }
        for own in ["user-7", "org:12/jane", "123456", "", "00ab1234567"] {
            assert_eq!(id_without_contact(own, 256), own);
        }
    }
}
