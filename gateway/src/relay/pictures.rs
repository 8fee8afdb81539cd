//! The answer of an upstream that generates images: passed through once it is known to be valid.

use bytes::Bytes;
use gatewright::redact::Redactor;
use gatewright_protocol::conversation::{Protocol, Usage};
use serde_json::value::RawValue;

use super::failure::AttemptFailure;
use gatewright_protocol::lazy_json::members;

/// The usage that an answer reports, and its number of images; no usage if it reports none, since the tokens of an image can't be
/// estimated. Errors: the answer contains no images.
pub(super) fn usage(document: &Bytes, redactor: &Redactor) -> Result<(Usage, u64), AttemptFailure> {
    let text = std::str::from_utf8(document).map_err(|_| AttemptFailure::broken("is not text", redactor))?;
    let (mut images, mut usage) = (None, None);
    members(text, |name, value| match name {
        "data" => images = serde_json::from_str::<Vec<&RawValue>>(value.get()).ok(),
        // In the format of the responses protocol.
        "usage" => usage = Protocol::Responses.usage_in(value, Usage::default()),
        _ => {}
    })
    .map_err(|_| AttemptFailure::broken("is not a JSON object", redactor))?;
    let wrong = || AttemptFailure::of_document(Protocol::Chat, document, "has no list of images", redactor);
    let images = images.ok_or_else(wrong)?;
    Ok((usage.unwrap_or_default(), images.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(document: &'static str) -> Result<(Usage, u64), String> {
        let read = usage(&Bytes::from_static(document.as_bytes()), &Redactor::default());
        read.map_err(|failure| failure.cause().message.clone())
    }

    #[test]
    fn image_response_reports_usage_and_image_count() {
        let usage_and_images =
            of(r#"{"created":1,"error":null,"data":[{}],"usage":{"input_tokens":7,"output_tokens":900}}"#);
        assert_eq!(
            usage_and_images.map(|(usage, images)| (usage.input, usage.output, images)),
            Ok((Some(7), Some(900), 1))
        );
        assert_eq!(of(r#"{"data":[]}"#), Ok((Usage::default(), 0)));
        assert_eq!(of(r#"{"data":[{"url":"a"},{"url":"b"}]}"#), Ok((Usage::default(), 2)));
    }

    #[test]
    fn document_without_images_is_an_error() {
        for document in ["", "<html>", "[]", r#"{"data":{}}"#, r#"{"created":1}"#] {
            assert!(of(document).is_err(), "{document}");
        }
        assert_eq!(of(r#"{"error":{"message":"no paint"}}"#), Err("no paint".to_owned()));
    }
}
