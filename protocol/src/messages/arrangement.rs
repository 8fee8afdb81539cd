//! Rearranges the turns of a conversation for the messages protocol. Its providers reject a conversation whose turns
//! don't alternate, that doesn't begin with the user, or where a call isn't directly followed by its result.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::block_out;
use crate::calls::{NO_RESULT, NOTHING};
use crate::conversation::{Conversation, Part, PartKind, Role, Turn};
use crate::members::RequestWriter;
use crate::thoughts::joined;
use crate::turns::late_instructions;

/// The system prompt and messages of a request of this protocol, unchanged.
pub(super) fn as_it_was(
    conversation: &Conversation,
    writer: &mut RequestWriter<'_>,
) -> (Option<Value>, Vec<Value>) {
    let mut system = None;
    let mut messages: Vec<Value> = Vec::new();
    let same_message = |one: &Turn, other: &Turn| one.at == other.at;
    for turns in conversation.turns.chunk_by(same_message) {
        let (Some(first), parts) =
            (turns.first(), turns.iter().flat_map(|turn| &turn.parts).collect::<Vec<_>>())
        else {
            continue;
        };
        if first.at == "/system" {
            system = block_out::content(&parts, "/system", writer);
            continue;
        }
        let role = match first.role {
            Role::User | Role::Tool => "user",
            Role::Assistant => "assistant",
            Role::System | Role::Developer => "system",
        };
        let mut message = crate::members::object([("role", role.into())]);
        if let Some(content) = block_out::content(&parts, &format!("{}/content", first.at), writer) {
            message.insert("content".to_owned(), content);
        }
        writer.complete(&mut message, &first.at);
        messages.push(message.into());
    }
    (system, messages)
}

/// The system prompt and messages of a request of another protocol.
pub(super) fn arranged(
    conversation: &Conversation,
    writer: &mut RequestWriter<'_>,
) -> (Option<Value>, Vec<Value>) {
    let mut arranged = Arrangement { system: Vec::new(), messages: Vec::new() };
    let mut results = results_by_call(conversation, writer);
    let late = late_instructions(&conversation.turns);
    for (number, turn) in conversation.turns.iter().enumerate() {
        if let Some(name) = &turn.name {
            writer.lose(name.at.clone());
        }
        match turn.role {
            Role::System | Role::Developer if number < late => arranged.instruct(turn, writer),
            Role::System | Role::Developer => {
                writer.lose(format!("{}/role", turn.at));
                let blocks = turn.parts.iter().filter_map(|part| block_out::write(part, writer)).collect();
                arranged.push("user", blocks);
            }
            Role::User | Role::Tool => {
                let own = turn.parts.iter().filter(|part| !matches!(part.kind, PartKind::Result(_)));
                let blocks = own.filter_map(|part| block_out::write(part, writer)).collect();
                arranged.push("user", blocks);
            }
            Role::Assistant => {
                let parts = joined(&turn.parts, |proof| writer.proof(Some(proof)).is_some());
                let blocks = parts.iter().filter_map(|part| block_out::write(part, writer)).collect();
                arranged.push("assistant", blocks);
                let answers = turn.parts.iter().filter_map(|part| match &part.kind {
                    PartKind::Call(call) => Some(match results.remove(call.id.as_str()) {
                        Some(result) => block_out::write(result, writer)?,
                        None => json!({ "type": "tool_result", "tool_use_id": call.id, "content": NO_RESULT, "is_error": true }),
                    }),
                    _ => None,
                });
                let answers = answers.collect();
                arranged.push("user", answers);
            }
        }
    }
    // Results without a call.
    let mut places: Vec<_> = results.into_values().map(|part| part.at.clone()).collect();
    places.sort_unstable();
    for at in places {
        writer.lose(at);
    }
    arranged.finish()
}

/// The results by their calls. If a call has several, the last one counts.
fn results_by_call<'a>(
    conversation: &'a Conversation,
    writer: &mut RequestWriter<'_>,
) -> HashMap<&'a str, &'a Part> {
    let mut results = HashMap::new();
    for part in conversation.turns.iter().flat_map(|turn| &turn.parts) {
        if let PartKind::Result(result) = &part.kind
            && let Some(earlier) = results.insert(result.call_id.as_str(), part)
        {
            writer.lose(earlier.at.clone());
        }
    }
    results
}

struct Arrangement {
    system: Vec<Value>,
    /// The role and the blocks of each message.
    messages: Vec<(&'static str, Vec<Value>)>,
}

impl Arrangement {
    /// Adds instructions, all at the beginning. Reports any that came later.
    fn instruct(&mut self, turn: &Turn, writer: &mut RequestWriter<'_>) {
        if !self.messages.is_empty() {
            writer.lose(format!("{}/role", turn.at));
        }
        for part in &turn.parts {
            match &part.kind {
                PartKind::Text(_) | PartKind::Refusal(_) => {
                    self.system.extend(block_out::write(part, writer));
                }
                // Only text can be an instruction.
                _ => writer.lose(part.at.clone()),
            }
        }
    }

    fn push(&mut self, role: &'static str, blocks: Vec<Value>) {
        if blocks.is_empty() {
            return;
        }
        match self.messages.last_mut() {
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => self.messages.push((role, blocks)),
        }
    }

    fn finish(mut self) -> (Option<Value>, Vec<Value>) {
        if self.messages.is_empty() {
            // If there are only instructions, the last one becomes the user's message.
            let last = self.system.pop().unwrap_or_else(|| block_out::text(NOTHING).into());
            self.messages.push(("user", vec![last]));
        }
        if self.messages.first().is_some_and(|(role, _)| *role == "assistant") {
            self.messages.insert(0, ("user", vec![block_out::text(NOTHING).into()]));
        }
        if let Some(("assistant", blocks)) = self.messages.last_mut() {
            trim_end(blocks);
        }
        let system = (!self.system.is_empty()).then(|| self.system.into());
        let messages = self.messages.into_iter().filter(|(_, blocks)| !blocks.is_empty());
        (system, messages.map(|(role, content)| json!({ "role": role, "content": content })).collect())
    }
}

/// A prefilled answer must not end with whitespace.
fn trim_end(blocks: &mut Vec<Value>) {
    let Some(last) = blocks.last_mut() else { return };
    let trimmed = last["text"].as_str().map(|text| text.trim_end().to_owned());
    match trimmed {
        Some(text) if text.is_empty() => {
            blocks.pop();
        }
        Some(text) => last["text"] = text.into(),
        None => {}
    }
}
