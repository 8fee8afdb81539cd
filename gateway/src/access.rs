//! Access control: the API key.

mod gatekeeper;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
pub use gatewright::{ApiKey, InvalidKey};

pub(crate) use self::gatekeeper::{Gatekeeper, is_native};
use crate::random::random_bytes;

/// Generates a random 256-bit key.
pub(crate) fn random_key() -> ApiKey {
    ApiKey::new(format!("gw-{}", BASE64_URL_SAFE_NO_PAD.encode(random_bytes()))).expect("visible ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_keys_differ_and_have_256_bits() {
        let (one, other) = (random_key(), random_key());
        assert_ne!(one.expose(), other.expose());
        assert_eq!(one.expose().len(), "gw-".len() + 43);
    }
}
