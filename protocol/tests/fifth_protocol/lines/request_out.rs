//! Writes a provider's request. Everything but texts is reported as dropped.

use gatewright_protocol::conversation::{Conversation, PartKind, Role};
use gatewright_protocol::{Defaults, EncodedRequest};
use serde_json::{Value, json};

pub(super) fn request_out(conversation: &Conversation, defaults: Defaults) -> EncodedRequest {
    let (mut say, mut dropped) = (Vec::new(), Vec::new());
    for turn in &conversation.turns {
        let by = match turn.role {
            Role::System | Role::Developer => "system",
            Role::User | Role::Tool => "user",
            Role::Assistant => "model",
        };
        for part in &turn.parts {
            match &part.kind {
                PartKind::Text(text) => say.push(json!({ "by": by, "text": text })),
                _ => dropped.push(part.at.clone()),
            }
        }
    }
    dropped.extend(conversation.tools.iter().map(|tool| tool.at.clone()));
    dropped.extend(conversation.sampling.temperature.iter().map(|temperature| temperature.at.clone()));
    dropped.extend(conversation.extra.iter().map(|extra| extra.at.clone()));
    let longest = conversation.max_tokens.as_ref().map_or(defaults.max_tokens, |longest| longest.value);
    let mut body = json!({ "model": conversation.model, "say": say, "longest": longest });
    if conversation.stream {
        body["live"] = Value::Bool(true);
    }
    EncodedRequest { body, dropped }
}
