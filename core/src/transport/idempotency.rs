//! Idempotency keys: new ones, and those of the rounds of a loop.

use std::fmt::Write as _;

use ring::digest;
use ring::rand::{SecureRandom as _, SystemRandom};
use uuid::Uuid;

use crate::wire::limits::MAX_IDEMPOTENCY_KEY_CHARS;

/// How much of the hash of a long key is part of the derived one, in bytes.
const HASH_BYTES: usize = 16;

/// A new key: a random UUID. Its bytes are those of the operating system, because a process that forks shares the state of every other
/// generator with its children, whose keys would be the same.
pub(super) fn new_key() -> String {
    let mut bytes = [0; 16];
    let key = match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => uuid::Builder::from_random_bytes(bytes).into_uuid(),
        Err(_) => Uuid::new_v4(),
    };
    key.to_string()
}

/// The key of a later round of a loop; `round` is counted from 0. The caller's key is that of the first round: the bodies of the
/// others differ. A key that leaves no room for the number of the round is cut, and completed with a hash of the whole, so that
/// long keys that begin alike stay different.
pub fn key_of_round(key: &str, round: usize) -> String {
    let number = round + 1;
    let derived = format!("{key}-{number}");
    if derived.len() <= MAX_IDEMPOTENCY_KEY_CHARS {
        return derived;
    }
    let mut end = String::from("-");
    for byte in &digest::digest(&digest::SHA256, key.as_bytes()).as_ref()[..HASH_BYTES] {
        write!(end, "{byte:02x}").expect("a string takes everything");
    }
    write!(end, "-{number}").expect("a string takes everything");
    let cut = key.floor_char_boundary(MAX_IDEMPOTENCY_KEY_CHARS - end.len());
    format!("{}{end}", &key[..cut])
}
