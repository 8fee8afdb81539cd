//! Webhooks: no signature but that of a secret is taken, whatever is written beside it; a body that is signed rightly
//! is judged as an unsigned one is.
//!
//! An input is the id, a line end, the signature header, a line end, and the body.

#![no_main]

use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use gatewright::ErrorKind;
use gatewright::webhook::{self, ID_HEADER, SIGNATURE_HEADER, Secret, TIMESTAMP_HEADER};
use libfuzzer_sys::{Corpus, fuzz_target};

static SECRETS: LazyLock<[Secret; 2]> =
    LazyLock::new(|| [[7; 32], [8; 32]].map(|bytes| Secret::from_bytes(bytes).expect("long enough")));

fuzz_target!(|input: &[u8]| -> Corpus {
    let mut parts = input.splitn(3, |byte| *byte == b'\n');
    let (Some(id), Some(forged), Some(body)) = (parts.next(), parts.next(), parts.next()) else {
        return Corpus::Reject;
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let timestamp = now.to_string();
    let headers = |signature: &[u8]| {
        [
            (ID_HEADER, id.to_vec()),
            (TIMESTAMP_HEADER, timestamp.clone().into()),
            (SIGNATURE_HEADER, signature.to_vec()),
        ]
    };
    let refused = webhook::unwrap(body, headers(forged), &*SECRETS).expect_err("nobody signed it");
    assert_eq!(refused.kind(), ErrorKind::WebhookSignature);

    let Ok(id) = std::str::from_utf8(id) else { return Corpus::Keep };
    // Blanks around a header's value are no part of it.
    let id = id.trim();
    let signed = [forged, b" ", SECRETS[1].sign(id, now, body).as_bytes()].concat();
    let taken = webhook::unwrap(body, headers(&signed), &*SECRETS);
    let unsigned = webhook::parse_unsigned(body);
    match taken {
        Err(error) if error.kind() == ErrorKind::WebhookSignature => {
            assert_ne!(error.code(), Some("no_matching_signature"), "it is signed");
        }
        Err(_) => assert!(unsigned.is_err()),
        Ok(task) => assert_eq!(task.id, unsigned.expect("it was read").id),
    }
    Corpus::Keep
});
