//! Reads a client's request.

use gatewright_protocol::MalformedDocument;
use gatewright_protocol::conversation::{Conversation, Located, Part, PartKind, Role, Turn};
use serde_json::Value;

use super::LINES;

/// Errors: it has no list of texts.
pub(super) fn request_in(body: &Value, model: &str, stream: bool) -> Result<Conversation, MalformedDocument> {
    let say = body["say"].as_array().ok_or_else(|| MalformedDocument("say is not a list".to_owned()))?;
    let turn = |(index, line): (usize, &Value)| {
        let role = match line["by"].as_str() {
            Some("system") => Role::System,
            Some("model") => Role::Assistant,
            _ => Role::User,
        };
        let text = PartKind::Text(line["text"].as_str().unwrap_or_default().to_owned());
        let part = Part { at: format!("/say/{index}/text").into(), kind: text, cache: None };
        Turn { at: format!("/say/{index}").into(), role, name: None, parts: vec![part] }
    };
    Ok(Conversation {
        source: LINES,
        model: model.to_owned(),
        turns: say.iter().enumerate().map(turn).collect(),
        max_tokens: body["longest"].as_u64().map(|longest| Located::new(longest, "/longest")),
        stream,
        ..Conversation::default()
    })
}
