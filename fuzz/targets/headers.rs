//! Headers that a client reads of an answer (waits, request ids, places, ranges, kinds): whatever they say, no time is
//! longer than the longest, no text longer than a text for people, and nothing overflows.
//!
//! An input is a status in two bytes, then header lines.

#![no_main]

use std::time::{Duration, SystemTime};

use gatewright::{LONGEST_TIME, fuzzing};
use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::{Corpus, fuzz_target};

/// Wide enough for any message, with what a header may have put into it.
const MAX_TEXT_BYTES: usize = 8 * 1024;

fuzz_target!(|input: &[u8]| -> Corpus {
    let Some((status, lines)) = input.split_first_chunk() else { return Corpus::Reject };
    let status = 300 + u16::from_le_bytes(*status) % 300;
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    for from in [0, 5, u64::MAX] {
        for total in [None, Some(0), Some(10), Some(u64::MAX)] {
            assert!(!(fuzzing::continues(&headers, from, total) && total == Some(0)), "a part of nothing");
        }
    }
    for now in [SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH + 1000 * LONGEST_TIME / 999] {
        let error = fuzzing::status_error(status, headers.clone(), bytes::Bytes::new(), now);
        assert!(error.retry_after().is_none_or(|wait| (Duration::ZERO..=LONGEST_TIME).contains(&wait)));
        assert!(error.to_string().len() <= MAX_TEXT_BYTES, "{error}");
    }
    Corpus::Keep
});
