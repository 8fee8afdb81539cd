//! Input other than text. The simulated provider doesn't look at it: it counts images, and charges tokens like a real
//! provider does for a medium-sized image (ours).

use gatewright_protocol::json::{list, text};
use serde_json::Value;

use crate::simulator::conversation::MediaCount;

/// Tokens of an image in the chat and responses protocols.
const IMAGE: usize = 765;
/// Tokens of an image whose `detail` is `low`.
const ROUGH_IMAGE: usize = 85;
/// Tokens of data or a file in the native protocol.
const NATIVE_MEDIUM: usize = 258;

/// The images in chat messages (2.1).
pub(crate) fn of_messages(messages: &Value) -> MediaCount {
    let parts = list(messages).flat_map(|message| list(&message["content"]));
    parts.filter(|part| part["type"] == "image_url").map(|part| image(&part["image_url"]["detail"])).sum()
}

/// The images in items of the responses protocol (2.4): in messages and in tool results.
pub(crate) fn of_items(items: &[Value]) -> MediaCount {
    let parts = items.iter().flat_map(|item| list(&item["content"]).chain(list(&item["output"])));
    parts.filter(|part| part["type"] == "input_image").map(|part| image(&part["detail"])).sum()
}

/// Native parts that contain data or name a file (2.5).
pub(crate) fn of_contents(contents: &Value) -> MediaCount {
    let parts = list(contents).flat_map(|content| list(&content["parts"]));
    let media = parts.flat_map(|part| [&part["inlineData"], &part["fileData"]]);
    media.filter(|media| media.is_object()).map(native).sum()
}

fn image(detail: &Value) -> MediaCount {
    MediaCount { pictures: 1, tokens: if text(detail) == "low" { ROUGH_IMAGE } else { IMAGE } }
}

fn native(media: &Value) -> MediaCount {
    MediaCount { pictures: text(&media["mimeType"]).starts_with("image/").into(), tokens: NATIVE_MEDIUM }
}
