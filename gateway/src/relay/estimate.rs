//! An estimate of the tokens of a conversation, for upstreams that do not count them.

use crate::conversation::{Conversation, Input, Part, PartKind, ToolKind};
use crate::simulator::tokens;

/// Tokens of an image, a sound or a document, whatever its size.
const OF_A_MEDIUM: usize = 256;
/// Tokens around a turn and around a tool.
const AROUND: usize = 4;

/// The number of tokens of a request, about.
pub(super) fn of(conversation: &Conversation) -> usize {
    let turns = conversation.turns.iter().map(|turn| AROUND + of_parts(&turn.parts));
    let tools = conversation.tools.iter().map(|tool| AROUND + of_tool(&tool.kind));
    turns.chain(tools).fold(0, usize::saturating_add)
}

fn of_parts(parts: &[Part]) -> usize {
    parts.iter().map(|part| of_part(&part.kind)).fold(0, usize::saturating_add)
}

fn of_part(part: &PartKind) -> usize {
    match part {
        PartKind::Text(text) | PartKind::Refusal(text) => tokens::count(text),
        PartKind::Image(_) | PartKind::Audio(_) | PartKind::File(_) => OF_A_MEDIUM,
        PartKind::Call(call) => {
            let (Input::Json(input) | Input::Text(input)) = &call.input;
            tokens::count(&call.name) + tokens::count(input)
        }
        PartKind::Result(result) => of_parts(&result.parts),
        PartKind::Thought(thought) => thought.text.iter().map(|text| tokens::count(text)).sum(),
        PartKind::Other(value) => tokens::count(&value.to_string()),
    }
}

fn of_tool(tool: &ToolKind) -> usize {
    match tool {
        ToolKind::Function { name, description, parameters, .. } => {
            let parameters = parameters.as_ref().map_or(0, |schema| tokens::count(&schema.to_string()));
            tokens::count(name) + description.as_deref().map_or(0, tokens::count) + parameters
        }
        ToolKind::Custom { name, description, .. } => {
            tokens::count(name) + description.as_deref().map_or(0, tokens::count)
        }
        ToolKind::Other(value) => tokens::count(&value.to_string()),
    }
}
