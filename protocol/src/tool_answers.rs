//! Restores the client's view of the calls in an answer: with its own tool names, as custom tool calls where functions
//! stood in for custom tools, and with unique ids that its protocol accepts.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Defaults;
use super::tool_calls::{CallIds, ToolNames};
use super::turns::{custom_text, has_custom_tools, replace_own_kinds};
use crate::conversation::{Answer, Conversation, Delta, Input, PartKind, Protocol, ToolKind};

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct ClientCalls {
    ids: CallIds,
    /// The client's tools by the names the provider knows: the client's name, and whether a function stands in for a
    /// custom tool.
    tools: HashMap<String, (String, bool)>,
    /// Arguments so far of calls whose text is extracted once they are complete, by choice and call.
    held: HashMap<(u32, u32), Arguments>,
    held_bytes: usize,
}

impl ClientCalls {
    /// For the answer to this request from a provider that speaks the target's protocol.
    pub(super) fn new(conversation: &Conversation, target: Protocol, defaults: Defaults) -> Self {
        let has_custom = has_custom_tools(target, defaults);
        let mut tools = HashMap::new();
        let mut conversation = Cow::Borrowed(conversation);
        if conversation.source == Protocol::Responses {
            replace_own_kinds(&mut conversation);
        }
        let names = ToolNames::new(&conversation, target);
        for tool in &conversation.tools {
            let (name, is_custom) = match &tool.kind {
                ToolKind::Function { name, .. } => (name, false),
                ToolKind::Custom { name, .. } => (name, !has_custom),
                ToolKind::Other(_) => continue,
            };
            let written = names.written(name);
            if is_custom || written != name {
                tools.insert(written.to_owned(), (name.clone(), is_custom));
            }
        }
        let ids = CallIds::new(conversation.source.codec().rules().call_ids);
        Self { ids, tools, held: HashMap::new(), held_bytes: 0 }
    }

    /// Number of buffered bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Translates the calls of a whole answer.
    pub(super) fn answer(mut self, answer: &mut Answer) {
        for part in answer.choices.iter_mut().flat_map(|choice| &mut choice.parts) {
            let PartKind::Call(call) = &mut part.kind else { continue };
            call.id = self.ids.next(&call.id);
            let Some((name, is_custom)) = self.tools.get(&call.name) else { continue };
            call.name.clone_from(name);
            if let (Input::Json(arguments), true) = (&call.input, *is_custom) {
                call.input = Input::Text(custom_text(arguments));
            }
        }
    }

    /// Translates the calls of a stream.
    pub(super) fn deltas(&mut self, deltas: &mut Vec<Delta>) {
        let is_touched = |delta: &Delta| matches!(delta, Delta::Call { .. });
        if self.held.is_empty() && !deltas.iter().any(is_touched) {
            return;
        }
        for delta in std::mem::take(deltas) {
            self.delta(delta, deltas);
        }
    }

    fn delta(&mut self, delta: Delta, deltas: &mut Vec<Delta>) {
        match delta {
            Delta::Call { choice, call, id, mut name, mut custom, signature } => {
                let id = self.ids.next(&id);
                if let Some((own, is_custom)) = self.tools.get(&name) {
                    name.clone_from(own);
                    if *is_custom && !custom {
                        custom = true;
                        self.held.insert((choice, call), Arguments::default());
                    }
                }
                deltas.push(Delta::Call { choice, call, id, name, custom, signature });
            }
            Delta::CallInput { choice, call, text } => {
                let Some(arguments) = self.held.get_mut(&(choice, call)) else {
                    deltas.push(Delta::CallInput { choice, call, text });
                    return;
                };
                self.held_bytes += text.len();
                if arguments.push(&text) {
                    self.release((choice, call), deltas);
                }
            }
            Delta::Ended { choice, .. } => {
                let mut calls: Vec<_> = self.held.keys().filter(|(of, _)| *of == choice).copied().collect();
                calls.sort_unstable();
                for call in calls {
                    self.release(call, deltas);
                }
                deltas.push(delta);
            }
            _ => deltas.push(delta),
        }
    }

    fn release(&mut self, (choice, call): (u32, u32), deltas: &mut Vec<Delta>) {
        let Some(Arguments { text, .. }) = self.held.remove(&(choice, call)) else { return };
        self.held_bytes -= text.len();
        deltas.push(Delta::CallInput { choice, call, text: custom_text(&text) });
    }
}

/// Arguments as they arrive, and how far their JSON object is open.
#[derive(Debug, Clone, Default)]
struct Arguments {
    text: String,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Arguments {
    /// Adds a piece. Returns whether the object is complete.
    fn push(&mut self, piece: &str) -> bool {
        self.text.push_str(piece);
        let mut is_whole = false;
        for byte in piece.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    is_whole |= self.depth == 0;
                }
                _ => {}
            }
        }
        is_whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{FinishReason, Tool};

    #[test]
    fn custom_tool_input_is_delivered_once_its_arguments_are_complete() {
        let custom = ToolKind::Custom { name: "p.q".to_owned(), description: None, format: None };
        let request = Conversation {
            source: Protocol::Responses,
            tools: vec![Tool { at: "/tools/0".into(), kind: custom, schema_at: "".into(), cache: None }],
            ..Conversation::default()
        };
        let mut calls = ClientCalls::new(&request, Protocol::Messages, Defaults::default());
        let written = calls.tools.keys().next().expect("a name").clone();
        assert_ne!(written, "p.q");
        let input = |text: &str| Delta::CallInput { choice: 0, call: 0, text: text.to_owned() };
        let started = |name: &str, custom| Delta::Call {
            choice: 0,
            call: 0,
            id: "c".to_owned(),
            name: name.to_owned(),
            custom,
            signature: None,
        };
        let end = Delta::Ended { choice: 0, end: FinishReason::ToolCalls };
        let pieces =
            [started(&written, false), input("{\"in"), input("put\":\"a}\\\""), input("b\"}"), end.clone()];
        let mut out = Vec::new();
        for piece in pieces {
            let mut deltas = vec![piece];
            calls.deltas(&mut deltas);
            out.extend(deltas);
        }
        assert_eq!(out, [started("p.q", true), input("a}\"b"), end]);
        assert_eq!(calls.held_bytes(), 0);
    }
}
