//! Signatures of other protocols. Clients of this protocol treat a signature as bytes and may return it in another base64
//! alphabet, so foreign text is wrapped as prefixed bytes.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::prelude::BASE64_STANDARD;

/// Prefixes of a signature, and of a hidden thought's opaque content.
const SIGNATURE: &[u8] = b"gw-signature:";
const REDACTED: &[u8] = b"gw-redacted:";

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// A signature in the form that clients of this protocol accept.
pub(super) fn wrapped(signature: &str, redacted: bool) -> String {
    let mark = if redacted { REDACTED } else { SIGNATURE };
    BASE64_STANDARD.encode([mark, signature.as_bytes()].concat())
}

/// The unwrapped signature, and whether it is a hidden thought.
pub(super) fn unwrapped(signature: &str) -> Option<(String, bool)> {
    // The first characters suffice, and most signatures are long.
    let start = signature.get(..8)?;
    if ![SIGNATURE, REDACTED].iter().any(|mark| BASE64_STANDARD.encode(&mark[..6]) == start) {
        return None;
    }
    let bytes = decoded(signature)?;
    let (rest, redacted) = match bytes.strip_prefix(SIGNATURE) {
        Some(rest) => (rest, false),
        None => (bytes.strip_prefix(REDACTED)?, true),
    };
    Some((String::from_utf8(rest.to_vec()).ok()?, redacted))
}

/// Decodes either base64 alphabet, padded or not.
pub(super) fn decoded(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()
}

#[cfg(test)]
mod tests {
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;

    use super::*;

    #[test]
    fn wrapped_signature_survives_base64url_reencoding() {
        for (signature, redacted) in [("A+/=", false), ("ü", true), ("", false)] {
            let wrapped = wrapped(signature, redacted);
            let sent_back = BASE64_URL_SAFE_NO_PAD.encode(BASE64_STANDARD.decode(&wrapped).expect("base64"));
            for form in [wrapped, sent_back] {
                assert_eq!(unwrapped(&form), Some((signature.to_owned(), redacted)), "{form}");
            }
        }
    }

    #[test]
    fn native_signatures_are_not_unwrapped() {
        for signature in ["", "CgYBAgMEBQY=", "Z3ctc2ln", "gw-signature:x", "ü", "Z3ctc2lnbmF0dXJlOv8="] {
            assert_eq!(unwrapped(signature), None, "{signature}");
        }
    }
}
