//! Untrusted documents: configurations of operators, and video reports of providers.

use std::ffi::OsString;

use gatewright_protocol::{VideoDimensions, VideoForm, VideoStage};
use serde_json::Value;

/// The value of each secret of a configuration; no message may contain it.
const CANARY: &str = "sk-canary-4f2a";
/// Maximum length of all problems of a configuration, in bytes: about fifty problems.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;

#[expect(clippy::unnecessary_wraps, reason = "the signature of a look-up")]
fn variable(_: &str) -> Option<OsString> {
    Some(CANARY.into())
}

/// Reads a configuration. Returns the number of its warnings or problems; `None`: it is not UTF-8, or names files, which are not
/// read here.
///
/// # Panics
///
/// If the problems are too long or contain a secret.
pub fn configure(input: &[u8]) -> Option<usize> {
    let text = str::from_utf8(input).ok()?;
    // An escape may be part of a key's name.
    if ["file", "certificate", "\\"].iter().any(|word| text.contains(word)) {
        return None;
    }
    let messages = match gatewright_config::read_text(text, variable) {
        Ok(read) => read.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        Err(problems) => problems.to_string().lines().map(str::to_owned).collect(),
    };
    let length: usize = messages.iter().map(String::len).sum();
    assert!(length <= MAX_MESSAGE_BYTES, "{length} bytes of messages about {} bytes", input.len());
    // A text that contains the secret itself may be quoted, like other names.
    assert!(text.contains("canary") || !messages.concat().contains("canary"), "{messages:?}");
    Some(messages.len())
}

/// Reads a provider's video report, and writes a video request. The first byte names the form; the rest is a
/// document. Returns the length of the request in bytes; `None`: it is not a document.
///
/// # Panics
///
/// If a report exceeds its bounds, a request contains a forbidden member, or a member reported as dropped doesn't exist.
pub fn film(input: &[u8]) -> Option<usize> {
    let (form, document) = input.split_first()?;
    let form = if form & 1 == 0 { VideoForm::Specified } else { VideoForm::Public };
    if let Ok(report) = form.report_in(document) {
        assert!(!report.id.is_empty() && report.id.len() <= document.len(), "{report:?}");
        if let VideoStage::Done(finished) = &report.stage {
            assert_eq!(finished.url.is_some(), form == VideoForm::Specified, "{finished:?}");
            assert!(finished.film.size.is_none_or(|(width, height)| width > 0 && height > 0), "{finished:?}");
        }
    }
    let request: Value = serde_json::from_slice(document).ok()?;
    let wanted = VideoDimensions { duration_s: Some(5), size: Some((1280, 720)) };
    let outgoing = form.request_out(&request, "m", wanted);
    if request.is_object() {
        assert_eq!(outgoing.body["model"], "m");
        assert!(outgoing.body["webhook_url"].is_null(), "the client's address went out");
    }
    for at in &outgoing.dropped {
        assert!(request.pointer(at).is_some(), "{at} is dropped, which is nowhere");
    }
    Some(outgoing.body.to_string().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_configurations_are_read_without_panic() {
        let text = "[upstreams.one]\nkind = \"chat\"\nbase_url = \"https://one.example/v1\"\nkey = { env = \"KEY\" }\n\
                    [models.m]\ntargets = [{ upstream = \"one\", weight = 1 }]\n";
        assert_eq!(configure(text.as_bytes()), Some(0));
        for end in 0..text.len() {
            assert!(configure(&text.as_bytes()[..end]).is_some());
        }
        assert_eq!(configure(b"[access]\nkey = { file = \"/dev/stdin\" }"), None);
    }

    #[test]
    fn video_documents_are_read_and_written_in_both_forms() {
        let report = r#"{"id":"v","status":"completed","output":{"url":"https://a","resolution":"1x1"}}"#;
        let request = r#"{"model":"x","prompt":"p","webhook_url":"https://a","duration":5,"seconds":"5"}"#;
        for form in 0..2 {
            for document in [report, request] {
                assert!(film(&[&[form], document.as_bytes()].concat()).is_some());
            }
        }
        assert!(film(b"\0{").is_none());
    }
}
