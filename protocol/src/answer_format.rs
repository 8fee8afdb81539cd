//! Response formats that the target can't express, or only accepts if the prompt mentions them: the gateway adds an
//! instruction.

use std::borrow::Cow;

use serde_json::Value;

use crate::codec::JsonObjectRule;
use crate::conversation::{
    Conversation, Format, JsonPointer, Part, PartKind, Protocol, Role, ToolChoice, ToolKind, Turn,
};

/// Requests JSON.
const JSON_OBJECT: &str = "Answer with one JSON object, and nothing else.";
/// The word that providers of chat and responses require in the prompt along with `json_object`.
const JSON: &[u8] = b"json";

/// Adds the instruction a target needs to answer in the format the client wants.
pub(super) fn instruct(conversation: &mut Cow<'_, Conversation>, target: Protocol) {
    let Some(format) = &conversation.format else { return };
    let is_beside_tools = is_beside_tools(conversation, target);
    let text = match &format.value {
        Format::OneOf(words) => one_of(words),
        Format::JsonObject if is_beside_tools || needs_words(conversation, target) => JSON_OBJECT.to_owned(),
        Format::JsonSchema { schema, .. } if is_beside_tools => {
            format!("Answer with one JSON object that fits this JSON Schema, and nothing else: {schema}")
        }
        _ => return,
    };
    let at: JsonPointer = format.at.clone();
    let part = Part { at: at.clone(), kind: PartKind::Text(text), cache: None };
    // Instructions with the system role may not end up in the input.
    let is_input = target.codec().rules().json_objects == JsonObjectRule::WordInInput;
    let role = if is_input { Role::Developer } else { Role::System };
    let turn = Turn { at, role, name: None, parts: vec![part] };
    let turns = &mut conversation.to_mut().turns;
    let place = turns.iter().position(|turn| !is_instruction(turn)).unwrap_or(turns.len());
    turns.insert(place, turn);
}

/// Whether the model may call tools, and therefore rejects a format of JSON.
pub(super) fn is_beside_tools(conversation: &Conversation, target: Protocol) -> bool {
    let may_call = conversation.tools.iter().any(|tool| matches!(tool.kind, ToolKind::Function { .. }))
        && conversation.tool_choice.as_ref().is_none_or(|choice| choice.value != ToolChoice::None);
    may_call && !(target.codec().rules().json_beside_tools)(&conversation.model)
}

fn one_of(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| Value::from(word.as_str()).to_string()).collect();
    format!("Answer with exactly one of these texts, without quotes, and nothing else: {}.", words.join(", "))
}

fn is_instruction(turn: &Turn) -> bool {
    matches!(turn.role, Role::System | Role::Developer)
}

/// Whether the target requires the prompt to say that the answer is JSON.
fn needs_words(conversation: &Conversation, target: Protocol) -> bool {
    match target.codec().rules().json_objects {
        JsonObjectRule::Instruction => true,
        JsonObjectRule::Word => !mentions_json(&conversation.turns, |_| true),
        JsonObjectRule::WordInInput => !mentions_json(&conversation.turns, |turn| !is_instruction(turn)),
        JsonObjectRule::Format => false,
    }
}

/// Whether a text that the target searches contains the word.
fn mentions_json(turns: &[Turn], counts: fn(&Turn) -> bool) -> bool {
    let is_there =
        |text: &str| text.as_bytes().windows(JSON.len()).any(|word| word.eq_ignore_ascii_case(JSON));
    let mut parts = turns.iter().filter(|turn| counts(turn)).flat_map(|turn| &turn.parts);
    parts.any(|part| matches!(&part.kind, PartKind::Text(text) if is_there(text)))
}
