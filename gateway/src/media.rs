//! Tokens of what a request holds beside text. The simulated provider does not look at it; it counts as much as an image
//! of middling size does at a real one (ours).

use serde_json::Value;

use crate::chat::{list, text};

/// Tokens of an image in the chat and responses protocols.
const IMAGE: usize = 765;
/// Tokens of an image that is to be looked at roughly only: `detail` is `low`.
const ROUGH_IMAGE: usize = 85;
/// Tokens of data or a file in the native protocol.
const NATIVE_MEDIUM: usize = 258;

/// Of the images in the messages of the chat protocol (2.1).
pub(crate) fn of_messages(messages: &Value) -> usize {
    let parts = list(messages).flat_map(|message| list(&message["content"]));
    parts.filter(|part| part["type"] == "image_url").map(|part| image(&part["image_url"]["detail"])).sum()
}

/// Of the images in the items of the responses protocol (2.4): in messages, and in what tools gave back.
pub(crate) fn of_items(items: &[Value]) -> usize {
    let parts = items.iter().flat_map(|item| list(&item["content"]).chain(list(&item["output"])));
    parts.filter(|part| part["type"] == "input_image").map(|part| image(&part["detail"])).sum()
}

/// Of the parts of the native protocol that hold data or name a file (2.5).
pub(crate) fn of_contents(contents: &Value) -> usize {
    let parts = list(contents).flat_map(|content| list(&content["parts"]));
    parts.filter(|part| part["inlineData"].is_object() || part["fileData"].is_object()).count()
        * NATIVE_MEDIUM
}

fn image(detail: &Value) -> usize {
    if text(detail) == "low" { ROUGH_IMAGE } else { IMAGE }
}
