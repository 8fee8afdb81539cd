//! Arranges the turns of a conversation as servers of the converse protocol accept them: instructions come first, turns
//! alternate, and the user begins. Results already follow their calls (`turns.rs`).

use serde_json::{Value, json};

use super::blocks::{self, Author, BlockWriter};
use crate::calls::NOTHING;
use crate::conversation::{Conversation, PartKind, Role, Turn};
use crate::thoughts::joined;
use crate::turns::late_instructions;

/// The system prompt and messages of a request.
pub(super) struct Arranged {
    pub(super) system: Vec<Value>,
    pub(super) messages: Vec<Value>,
}

/// Arranges a conversation.
pub(super) fn arranged(conversation: &Conversation, blocks: &mut BlockWriter<'_, '_>) -> Arranged {
    let mut arrangement = ConverseArrangement::default();
    let late = late_instructions(&conversation.turns);
    for (number, turn) in conversation.turns.iter().enumerate() {
        if let Some(name) = &turn.name {
            blocks.writer.lose(name.at.clone());
        }
        match turn.role {
            Role::System | Role::Developer if number < late => arrangement.instruct(turn, blocks),
            Role::System | Role::Developer | Role::User | Role::Tool => {
                if matches!(turn.role, Role::System | Role::Developer) {
                    blocks.writer.lose(format!("{}/role", turn.at));
                }
                let mut content = Vec::with_capacity(turn.parts.len());
                turn.parts.iter().for_each(|part| blocks.write(part, &mut content));
                arrangement.add(Author::User, content);
            }
            Role::Assistant => {
                let parts = joined(&turn.parts, |proof| blocks.writer.proof(Some(proof)).is_some());
                let mut content = Vec::with_capacity(parts.len());
                parts.iter().for_each(|part| blocks.write(part, &mut content));
                arrangement.add(Author::Assistant, content);
            }
        }
    }
    arrangement.finish()
}

#[derive(Default)]
struct ConverseArrangement {
    system: Vec<Value>,
    messages: Vec<(Author, Vec<Value>)>,
}

impl ConverseArrangement {
    /// Adds instructions, all at the beginning. Reports any that came later.
    fn instruct(&mut self, turn: &Turn, blocks: &mut BlockWriter<'_, '_>) {
        if !self.messages.is_empty() {
            blocks.writer.lose(format!("{}/role", turn.at));
        }
        for part in &turn.parts {
            match &part.kind {
                PartKind::Text(_) | PartKind::Refusal(_) => {
                    blocks.write(part, &mut self.system);
                }
                // Only text can be an instruction.
                _ => blocks.writer.lose(part.at.clone()),
            }
        }
    }

    fn add(&mut self, author: Author, content: Vec<Value>) {
        if content.is_empty() {
            return;
        }
        match self.messages.last_mut() {
            Some((last, earlier)) if *last == author => earlier.extend(content),
            _ => self.messages.push((author, content)),
        }
    }

    fn finish(mut self) -> Arranged {
        if self.messages.is_empty() {
            // If there are only instructions, the last one becomes the user's message.
            let last = self.system.iter().rposition(is_text).map(|last| self.system.remove(last));
            self.messages.push((Author::User, vec![last.unwrap_or_else(|| blocks::text(NOTHING))]));
            if !self.system.iter().any(is_text) {
                self.system.clear();
            }
        }
        if self.messages.first().is_some_and(|(author, _)| *author == Author::Assistant) {
            self.messages.insert(0, (Author::User, vec![blocks::text(NOTHING)]));
        }
        for (_, content) in &mut self.messages {
            // Servers reject a document without a text.
            if content.iter().any(|block| !block["document"].is_null()) && !content.iter().any(is_text) {
                content.push(blocks::text(NOTHING));
            }
        }
        if let Some((Author::Assistant, content)) = self.messages.last_mut() {
            trim_end(content);
        }
        let messages = self.messages.into_iter().filter(|(_, content)| !content.is_empty());
        let role = |author| if author == Author::User { "user" } else { "assistant" };
        let messages = messages.map(|(author, content)| json!({ "role": role(author), "content": content }));
        Arranged { system: self.system, messages: messages.collect() }
    }
}

fn is_text(block: &Value) -> bool {
    block["text"].is_string()
}

/// A prefilled answer must not end with whitespace.
fn trim_end(content: &mut [Value]) {
    let Some(last) = content.iter().rposition(|block| block["cachePoint"].is_null()) else { return };
    let Some(text) = content[last]["text"].as_str() else { return };
    content[last]["text"] = text.trim_end().into();
}
