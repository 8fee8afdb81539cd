//! Content that a target can't express. A header that names it isn't enough: without it, the answer is one to another
//! question.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use crate::conversation::{Conversation, JsonPointer, Part, PartKind, Role};
use crate::turns::replace_own_kinds;

/// A medium or a call that a target can't express.
#[derive(Debug, Clone, PartialEq)]
pub struct LostContent {
    /// The role of its turn.
    pub role: Role,
    /// The medium or call.
    pub part: Part,
}

/// The first medium or call among what a written request has dropped. `dropped`: the places that
/// [`Protocol::request_out`](crate::conversation::Protocol::request_out) returns for this conversation.
pub fn lost_content(conversation: &Conversation, dropped: &[JsonPointer]) -> Option<LostContent> {
    if dropped.is_empty() {
        return None;
    }
    let places: HashSet<&str> = dropped.iter().map(|place| &**place).collect();
    // The media inside kinds that only the client's protocol has are among the places, too.
    let mut conversation = Cow::Borrowed(conversation);
    replace_own_kinds(&mut conversation);
    conversation.turns.iter().find_map(|turn| {
        let mut parts = turn.parts.iter().flat_map(|part| std::iter::once(part).chain(within(part)));
        let part = parts.find(|part| is_content(&part.kind) && places.contains(&*part.at))?;
        Some(LostContent { role: turn.role, part: part.clone() })
    })
}

fn within(part: &Part) -> &[Part] {
    match &part.kind {
        PartKind::Result(result) => &result.parts,
        _ => &[],
    }
}

/// A result without its call isn't content: it is lost with the call, which is in a compaction or a stored item that only
/// the first provider can read.
fn is_content(kind: &PartKind) -> bool {
    match kind {
        PartKind::Image(_) | PartKind::Audio(_) | PartKind::File(_) | PartKind::Call(_) => true,
        PartKind::Other(value) => is_medium(value),
        _ => false,
    }
}

/// Whether a part that only the client's protocol knows is a medium: a video, a document of blocks, a file for a tool's
/// machine, or an image whose source has an unknown form.
fn is_medium(part: &Value) -> bool {
    const TYPES: [&str; 12] = [
        "image",
        "image_url",
        "input_image",
        "audio",
        "input_audio",
        "video",
        "video_url",
        "input_video",
        "document",
        "file",
        "input_file",
        "container_upload",
    ];
    const MEMBERS: [&str; 4] = ["inlineData", "inline_data", "fileData", "file_data"];
    part["type"].as_str().is_some_and(|kind| TYPES.contains(&kind))
        || MEMBERS.iter().any(|name| part.get(name).is_some_and(Value::is_object))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Defaults;
    use crate::conversation::Protocol;

    fn lost(source: Protocol, request: Value, target: Protocol) -> Option<(Role, String)> {
        let conversation = source.request_in(request, "m", false).expect("a request");
        let dropped = target.request_out(&conversation, Defaults::default()).dropped;
        lost_content(&conversation, &dropped).map(|lost| (lost.role, lost.part.at.to_string()))
    }

    #[test]
    fn dropped_media_in_a_function_response_count_as_lost_content() {
        let request = |part: Value| {
            json!({ "contents": [
                { "role": "user", "parts": [{ "text": "q" }] },
                { "role": "model", "parts": [{ "functionCall": { "name": "f", "args": {} } }] },
                { "role": "user", "parts": [
                    { "functionResponse": { "name": "f", "response": { "output": "a" }, "parts": [part] } },
                ] },
            ] })
        };
        let linked = json!({ "fileData": { "mimeType": "image/png", "fileUri": "https://a.example/a.png" } });
        let (role, place) = lost(Protocol::Native, request(linked), Protocol::Converse).expect("the image");
        assert!(matches!(role, Role::User | Role::Tool), "{role:?}");
        assert_eq!(place, "/contents/2/parts/0/functionResponse/parts/0");
        let inline = json!({ "inlineData": { "mimeType": "image/png", "data": "AA==" } });
        assert_eq!(lost(Protocol::Native, request(inline), Protocol::Converse), None);
    }

    #[test]
    fn client_specific_media_count_as_lost_content() {
        let place = |source, block: Value, target| {
            let text = json!({ "type": "text", "text": "q" });
            let request =
                json!({ "max_tokens": 9, "messages": [{ "role": "user", "content": [text, block] }] });
            lost(source, request, target).map(|(_, place)| place)
        };
        let second = Some("/messages/0/content/1".to_owned());
        let video = json!({ "type": "video_url", "video_url": { "url": "https://a.example/a.mp4" } });
        let upload = json!({ "type": "container_upload", "file_id": "file_1" });
        let pictured = json!([
            { "type": "text", "text": "a" },
            { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AA==" } },
        ]);
        let document = json!({ "type": "document", "source": { "type": "content", "content": pictured } });
        let odd = json!({ "type": "image", "source": { "type": "bucket", "key": "a.png" } });
        assert_eq!(place(Protocol::Chat, video.clone(), Protocol::Messages), second);
        assert_eq!(place(Protocol::Chat, video, Protocol::Chat), None);
        for block in [upload, document, odd] {
            assert_eq!(place(Protocol::Messages, block.clone(), Protocol::Chat), second, "{block}");
            assert_eq!(place(Protocol::Messages, block.clone(), Protocol::Messages), None, "{block}");
        }
        let unknown = json!({ "type": "marker", "id": "m" });
        assert_eq!(place(Protocol::Messages, unknown, Protocol::Chat), None);
    }

    #[test]
    fn dropped_settings_and_stray_results_are_not_lost_content() {
        let stray = json!({ "messages": [
            { "role": "user", "content": "hi" },
            { "role": "tool", "tool_call_id": "c", "content": "noon" },
        ], "logit_bias": { "1": 2 } });
        assert_eq!(lost(Protocol::Chat, stray, Protocol::Messages), None);
    }
}
