//! Media of converse.

use std::collections::HashSet;

use serde_json::Value;

use super::{blocks, messages, result_blocks};
use crate::judge::Findings;
use crate::judge::words::{is_base64, items, text, unknown};

/// The kinds of media, and their formats. Source: `ImageFormat`, `DocumentFormat`, `VideoFormat` and `AudioFormat` of the
/// model.
const FORMATS: [(&str, &[&str]); 4] = [
    ("image", &["png", "jpeg", "gif", "webp"]),
    ("document", &["pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"]),
    ("video", &["mkv", "mov", "mp4", "webm", "flv", "mpeg", "mpg", "wmv", "three_gp"]),
    (
        "audio",
        &[
            "mp3", "opus", "wav", "aac", "flac", "mp4", "ogg", "mkv", "mka", "x-aac", "m4a", "mpeg", "mpga",
            "pcm", "webm",
        ],
    ),
];

/// Media are bytes or an object in S3, have a known format, and are the user's. Source: `ImageSource` and its like in the
/// model, and "You can only include images and documents if the role is user" there.
pub(super) fn media_have_their_form(body: &Value, findings: &mut Findings) {
    for (at, block) in blocks(body).chain(result_blocks(body)) {
        for (kind, formats) in FORMATS {
            let medium = &block[kind];
            if medium.is_null() {
                continue;
            }
            let (at, source) = (format!("{at}/{kind}"), &medium["source"]);
            if !formats.contains(&text(medium, "format")) {
                findings
                    .report(format!("{at}/format"), format!("{} is no format of {kind}", medium["format"]));
            }
            unknown(source, &format!("{at}/source"), &["bytes", "s3Location", "text", "content"], findings);
            let is_stored = text(&source["s3Location"], "uri").starts_with("s3://");
            let is_text = kind == "document" && (source["text"].is_string() || source["content"].is_array());
            if !(is_stored || is_text || is_base64(text(source, "bytes"))) {
                findings.report(format!("{at}/source"), "neither bytes nor an object in S3");
            }
        }
    }
    for (at, _) in
        messages(body).filter(|(_, message)| message["role"] == "assistant").flat_map(|(at, message)| {
            items(&message["content"])
                .filter(|(_, block)| FORMATS.iter().any(|(kind, _)| !block[*kind].is_null()))
                .map(move |(index, block)| (format!("{at}/content/{index}"), block))
        })
    {
        findings.report(at, "only the user has media");
    }
}

/// "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square
/// brackets. The name can't contain more than one consecutive whitespace character", and names differ. Sources:
/// `DocumentBlock` of the model; github.com/simonw/llm-bedrock/issues/8, github.com/anomalyco/opencode/pull/48756,
/// github.com/aws-samples/sample-strands-agent-with-agentcore/pull/290.
pub(super) fn names_of_documents(body: &Value, findings: &mut Findings) {
    let mut known = HashSet::new();
    for (at, block) in blocks(body).chain(result_blocks(body)) {
        let document = &block["document"];
        if document.is_null() {
            continue;
        }
        let name = text(document, "name");
        let is_right = |c: char| c.is_ascii_alphanumeric() || " -()[]".contains(c);
        if name.is_empty() || name.len() > 200 || !name.chars().all(is_right) || name.contains("  ") {
            findings.report(format!("{at}/document/name"), format!("{name:?} is no name of a document"));
        }
        if !known.insert(name.to_ascii_lowercase()) {
            findings.report(format!("{at}/document/name"), format!("{name:?} for a second document"));
        }
    }
}

/// "If you include a ContentBlock with a document field in the array, you must also include a ContentBlock with a text
/// field". Source: `Message` of the model.
pub(super) fn a_text_beside_documents(body: &Value, findings: &mut Findings) {
    for (at, message) in messages(body) {
        let has = |kind: &str| items(&message["content"]).any(|(_, block)| !block[kind].is_null());
        if has("document") && !has("text") {
            findings.report(format!("{at}/content"), "a document without a text");
        }
    }
}
