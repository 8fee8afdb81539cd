//! Images and documents of the messages protocol.

use serde_json::Value;

use crate::judge::Findings;
use crate::judge::words::{PICTURES, is_base64, is_web, text, walk};

/// Images of four media types, documents in PDF or plain text, each as base64 without line breaks, at a URL, or by id.
/// Sources: "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif'
/// or 'image/webp'", github.com/anthropics/claude-code/issues/5955;
/// platform.claude.com/docs/en/build-with-claude/pdf-support.
pub(super) fn media_have_their_form(body: &Value, findings: &mut Findings) {
    walk(&body["messages"], "/messages", &mut |at, block| {
        let kind = text(block, "type");
        let source = &block["source"];
        if !["image", "document"].contains(&kind) || !source.is_object() {
            return;
        }
        let (media_type, data) = (text(source, "media_type"), text(source, "data"));
        let is_right = match text(source, "type") {
            "base64" if kind == "image" => PICTURES.contains(&media_type) && is_base64(data),
            "base64" => media_type == "application/pdf" && is_base64(data),
            "text" => kind == "document" && media_type == "text/plain" && source["data"].is_string(),
            "content" => {
                kind == "document" && (source["content"].is_string() || source["content"].is_array())
            }
            "url" => is_web(text(source, "url")),
            "file" => !text(source, "file_id").is_empty(),
            _ => false,
        };
        if !is_right {
            findings.report(
                format!("{at}/source"),
                format!("no source of the kind {:?} for {kind}", source["type"]),
            );
        }
    });
}
