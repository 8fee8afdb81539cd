//! One-time codes, with which `serve --open` signs the browser in that it opens: the page sends the code back once, and gets
//! the keys. The code itself opens nothing else.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use gatewright_system::random_bytes;
use subtle::ConstantTimeEq as _;

use crate::access::ApiKey;

/// How long a code is valid.
const LIFETIME: Duration = Duration::from_mins(1);
/// Number of wrong codes after which the right one is no longer accepted either.
const MAX_WRONG: u32 = 8;

/// The keys that a code is exchanged for.
#[derive(Clone)]
pub(crate) struct SignInKeys {
    pub(crate) client: ApiKey,
    pub(crate) admin: Option<ApiKey>,
}

/// The code that may still be used, if there is one.
#[derive(Default)]
pub(crate) struct SignIn(Mutex<Option<Pending>>);

struct Pending {
    code: String,
    keys: SignInKeys,
    expires: Instant,
    wrong: u32,
}

impl SignIn {
    /// A new code for these keys, with 256 random bits. It replaces an earlier one.
    pub(crate) fn begin(&self, keys: SignInKeys) -> String {
        let code = BASE64_URL_SAFE_NO_PAD.encode(random_bytes());
        let pending = Pending { code: code.clone(), keys, expires: Instant::now() + LIFETIME, wrong: 0 };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(pending);
        code
    }

    /// The keys, if this is the code and it is still valid; it isn't any more afterwards.
    pub(crate) fn exchange(&self, presented: &[u8]) -> Option<SignInKeys> {
        self.exchange_at(presented, Instant::now())
    }

    fn exchange_at(&self, presented: &[u8], now: Instant) -> Option<SignInKeys> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pending = held.as_mut().filter(|pending| now < pending.expires);
        let Some(pending) = pending else {
            *held = None;
            return None;
        };
        if bool::from(pending.code.as_bytes().ct_eq(presented)) {
            return held.take().map(|pending| pending.keys);
        }
        pending.wrong += 1;
        if pending.wrong == MAX_WRONG {
            *held = None;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> SignInKeys {
        SignInKeys { client: ApiKey::new("client".to_owned()).expect("a key"), admin: None }
    }

    #[test]
    fn code_is_valid_once() {
        let sign_in = SignIn::default();
        assert!(sign_in.exchange(b"").is_none());
        let code = sign_in.begin(keys());
        assert!(code.len() >= 43 && !code.contains("client"));
        assert_eq!(sign_in.exchange(code.as_bytes()).expect("its keys").client.expose(), "client");
        assert!(sign_in.exchange(code.as_bytes()).is_none());
    }

    #[test]
    fn code_expires_after_a_minute() {
        let sign_in = SignIn::default();
        let code = sign_in.begin(keys());
        let late = Instant::now() + LIFETIME;
        assert!(sign_in.exchange_at(code.as_bytes(), late).is_none());
        assert!(sign_in.exchange(code.as_bytes()).is_none(), "it isn't kept either");
    }

    #[test]
    fn too_many_wrong_codes_void_the_right_one() {
        for (wrong, is_valid) in [(MAX_WRONG - 1, true), (MAX_WRONG, false)] {
            let sign_in = SignIn::default();
            let code = sign_in.begin(keys());
            for _ in 0..wrong {
                assert!(sign_in.exchange(b"a guess").is_none());
            }
            assert_eq!(sign_in.exchange(code.as_bytes()).is_some(), is_valid, "{wrong}");
        }
    }

    #[test]
    fn new_code_replaces_the_earlier_one() {
        let sign_in = SignIn::default();
        let (earlier, code) = (sign_in.begin(keys()), sign_in.begin(keys()));
        assert!(sign_in.exchange(earlier.as_bytes()).is_none());
        assert!(sign_in.exchange(code.as_bytes()).is_some());
    }
}
