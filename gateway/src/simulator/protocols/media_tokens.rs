//! Token counts of non-text input. The simulated provider ignores the content and counts it like a medium-sized image
//! at a real provider (ours).

use serde_json::Value;

use crate::wire::json::{list, text};

/// Tokens of an image in the chat and responses protocols.
const IMAGE: usize = 765;
/// Tokens of an image whose `detail` is `low`.
const ROUGH_IMAGE: usize = 85;
/// Tokens of data or a file in the native protocol.
const NATIVE_MEDIUM: usize = 258;

/// Tokens of the images in chat messages (2.1).
pub(crate) fn of_messages(messages: &Value) -> usize {
    let parts = list(messages).flat_map(|message| list(&message["content"]));
    parts.filter(|part| part["type"] == "image_url").map(|part| image(&part["image_url"]["detail"])).sum()
}

/// Tokens of the images in items of the responses protocol (2.4): in messages and in tool results.
pub(crate) fn of_items(items: &[Value]) -> usize {
    let parts = items.iter().flat_map(|item| list(&item["content"]).chain(list(&item["output"])));
    parts.filter(|part| part["type"] == "input_image").map(|part| image(&part["detail"])).sum()
}

/// Tokens of native parts that hold data or name a file (2.5).
pub(crate) fn of_contents(contents: &Value) -> usize {
    let parts = list(contents).flat_map(|content| list(&content["parts"]));
    parts.filter(|part| part["inlineData"].is_object() || part["fileData"].is_object()).count()
        * NATIVE_MEDIUM
}

fn image(detail: &Value) -> usize {
    if text(detail) == "low" { ROUGH_IMAGE } else { IMAGE }
}
