//! What has arrived of a chat completion: chunks become steps, and steps become events.

use std::collections::VecDeque;

use indexmap::IndexMap;

use super::ChatEvent;
use crate::api::types::{
    ChatChunkChoiceFinishReason, ChatCompletionChunk, ChatDelta, ChatLogprobs, ChatToolCallDelta,
    TokenLogprob,
};
use crate::stream::growing_text::GrowingText;

/// What has arrived, and which events of it are pending.
#[derive(Debug)]
pub(super) struct AnswerSoFar {
    /// By index, in the order in which they began.
    choices: IndexMap<i64, ChoiceSoFar>,
    pub(super) steps: VecDeque<AnswerStep>,
    /// Whether texts are read as values.
    reads_json: bool,
}

#[derive(Debug)]
struct ChoiceSoFar {
    content: GrowingText,
    refusal: GrowingText,
    /// Those of the text, and of the refusal.
    tokens: [Vec<TokenLogprob>; 2],
    /// By index.
    calls: IndexMap<i64, CallSoFar>,
    // The state after all pending steps.
    has_content: bool,
    has_refusal: bool,
    /// Of the text, and of the refusal.
    has_tokens: [bool; 2],
    is_text_done: bool,
    open_call: Option<i64>,
}

#[derive(Debug)]
struct CallSoFar {
    name: String,
    arguments: GrowingText,
    /// Not a custom tool, which takes a text.
    is_function: bool,
}

/// A change of the answer whose event is pending.
#[derive(Debug)]
pub(super) enum AnswerStep {
    Content {
        choice: i64,
        text: String,
    },
    ContentDone {
        choice: i64,
        /// Whether the answer ends with this text; a text before tool calls is not a value.
        is_value: bool,
    },
    Refusal {
        choice: i64,
        text: String,
    },
    RefusalDone {
        choice: i64,
    },
    Tokens {
        choice: i64,
        of: TokenSource,
        tokens: Vec<TokenLogprob>,
    },
    TokensDone {
        choice: i64,
        of: TokenSource,
    },
    Call {
        choice: i64,
        call: i64,
        name: Option<String>,
        arguments: String,
    },
    CallDone {
        choice: i64,
        call: i64,
    },
}

/// What tokens are of.
#[derive(Debug, Clone, Copy)]
pub(super) enum TokenSource {
    Content,
    Refusal,
}

/// Reasons that cut an answer off.
const CUTS: [&str; 2] = [ChatChunkChoiceFinishReason::LENGTH, ChatChunkChoiceFinishReason::CONTENT_FILTER];

impl AnswerSoFar {
    pub(super) fn new(reads_json: bool) -> Self {
        Self { choices: IndexMap::new(), steps: VecDeque::new(), reads_json }
    }

    /// Takes a chunk apart. Returns whether the answer can still become a value, if it is read as one.
    pub(super) fn take(&mut self, chunk: ChatCompletionChunk) -> bool {
        for choice in chunk.choices {
            self.add(choice.index, choice.delta, choice.logprobs.unwrap_or_default());
            match choice.finish_reason.as_ref().map(|reason| reason.as_str()) {
                None | Some("") => {}
                Some(reason) if self.reads_json && CUTS.contains(&reason) => return false,
                Some(_) => self.end(choice.index, true),
            }
        }
        true
    }

    /// Ends the choices of a stream that has no reasons.
    pub(super) fn end_all(&mut self) {
        let indices: Vec<i64> = self.choices.keys().copied().collect();
        for choice in indices {
            self.end(choice, true);
        }
    }

    fn add(&mut self, choice: i64, delta: ChatDelta, logprobs: ChatLogprobs) {
        let reads_json = self.reads_json;
        let state = self.choices.entry(choice).or_insert_with(|| ChoiceSoFar::new(reads_json));
        if let Some(text) = delta.content.filter(|text| !text.is_empty()) {
            state.has_content = true;
            self.steps.push_back(AnswerStep::Content { choice, text });
        }
        if let Some(text) = delta.refusal.filter(|text| !text.is_empty()) {
            state.has_refusal = true;
            self.steps.push_back(AnswerStep::Refusal { choice, text });
        }
        for (of, tokens) in
            [(TokenSource::Content, logprobs.content), (TokenSource::Refusal, logprobs.refusal)]
        {
            if let Some(tokens) = tokens.filter(|tokens| !tokens.is_empty()) {
                state.has_tokens[of as usize] = true;
                self.steps.push_back(AnswerStep::Tokens { choice, of, tokens });
            }
        }
        for (position, piece) in (0..).zip(delta.tool_calls) {
            self.add_call(choice, piece.index.unwrap_or(position), piece);
        }
    }

    fn add_call(&mut self, choice: i64, call: i64, piece: ChatToolCallDelta) {
        if self.choices[&choice].open_call != Some(call) {
            self.end(choice, false);
        }
        let state = &mut self.choices[&choice];
        state.open_call = Some(call);
        let known = state.calls.entry(call).or_insert_with(CallSoFar::new);
        match piece.function {
            Some(function) => {
                let arguments = function.arguments.unwrap_or_default();
                self.steps.push_back(AnswerStep::Call { choice, call, name: function.name, arguments });
            }
            None => known.is_function &= piece.custom.is_none(),
        }
    }

    /// Completes what is open: the text before tool calls, which is not a value; a call before the next one.
    fn end(&mut self, choice: i64, is_value: bool) {
        let state = &mut self.choices[&choice];
        if !std::mem::replace(&mut state.is_text_done, true) {
            if state.has_content {
                self.steps.push_back(AnswerStep::ContentDone { choice, is_value });
            }
            if state.has_refusal {
                self.steps.push_back(AnswerStep::RefusalDone { choice });
            }
            for of in [TokenSource::Content, TokenSource::Refusal] {
                if state.has_tokens[of as usize] {
                    self.steps.push_back(AnswerStep::TokensDone { choice, of });
                }
            }
        }
        if let Some(call) = state.open_call.take()
            && state.calls[&call].is_function
        {
            self.steps.push_back(AnswerStep::CallDone { choice, call });
        }
    }

    /// The text of a choice, if it is read as a value: not beside a refusal.
    pub(super) fn value_text(&self, choice: i64) -> Option<&str> {
        let state = &self.choices[&choice];
        state.refusal.text().is_empty().then(|| state.content.text())
    }

    /// Takes a step; returns its event.
    pub(super) fn event<T>(&mut self, step: AnswerStep, value: Option<T>) -> ChatEvent<'_, T> {
        match step {
            AnswerStep::Content { choice: index, text } => {
                let content = &mut self.choices[&index].content;
                content.push(&text);
                let (delta, snapshot, parsed) = (content.newest(), content.text(), content.value());
                ChatEvent::ContentDelta { index, delta, snapshot, parsed }
            }
            AnswerStep::ContentDone { choice: index, .. } => {
                ChatEvent::ContentDone { index, content: self.choices[&index].content.text(), parsed: value }
            }
            AnswerStep::Refusal { choice: index, text } => {
                let refusal = &mut self.choices[&index].refusal;
                refusal.push(&text);
                ChatEvent::RefusalDelta { index, delta: refusal.newest(), snapshot: refusal.text() }
            }
            AnswerStep::RefusalDone { choice: index } => {
                ChatEvent::RefusalDone { index, refusal: self.choices[&index].refusal.text() }
            }
            AnswerStep::Tokens { choice: index, of, tokens } => {
                let all = &mut self.choices[&index].tokens[of as usize];
                let newest = all.len();
                all.extend(tokens);
                let (new, snapshot) = (&all[newest..], &all[..]);
                match of {
                    TokenSource::Content => ChatEvent::LogprobsContentDelta { index, content: new, snapshot },
                    TokenSource::Refusal => ChatEvent::LogprobsRefusalDelta { index, refusal: new, snapshot },
                }
            }
            AnswerStep::TokensDone { choice: index, of } => {
                let all = &self.choices[&index].tokens[of as usize];
                match of {
                    TokenSource::Content => ChatEvent::LogprobsContentDone { index, content: all },
                    TokenSource::Refusal => ChatEvent::LogprobsRefusalDone { index, refusal: all },
                }
            }
            AnswerStep::Call { choice, call, name, arguments } => {
                let known = &mut self.choices[&choice].calls[&call];
                if known.name.is_empty() {
                    known.name = name.unwrap_or_default();
                }
                known.arguments.push(&arguments);
                ChatEvent::ToolArgumentsDelta {
                    index: call,
                    name: &known.name,
                    arguments_delta: known.arguments.newest(),
                    arguments: known.arguments.text(),
                    parsed_arguments: known.arguments.value(),
                }
            }
            AnswerStep::CallDone { choice, call } => {
                let CallSoFar { name, arguments, .. } = &mut self.choices[&choice].calls[&call];
                // Not parsed again: a server may alternate between calls, and each turn ends one.
                let (arguments, parsed_arguments) = arguments.whole();
                ChatEvent::ToolArgumentsDone { index: call, name, arguments, parsed_arguments }
            }
        }
    }
}

impl ChoiceSoFar {
    fn new(reads_json: bool) -> Self {
        Self {
            content: GrowingText::new(reads_json),
            refusal: GrowingText::new(false),
            tokens: Default::default(),
            calls: IndexMap::new(),
            has_content: false,
            has_refusal: false,
            has_tokens: [false; 2],
            is_text_done: false,
            open_call: None,
        }
    }
}

impl CallSoFar {
    fn new() -> Self {
        Self { name: String::new(), arguments: GrowingText::new(true), is_function: true }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Takes a piece of a call's arguments; returns the arguments of the call that it ends.
    fn ended(answer: &mut AnswerSoFar, call: i64, arguments: &str) -> Option<(String, bool)> {
        let call = json!({ "index": call, "function": { "name": "f", "arguments": arguments } });
        let choice = json!({ "index": 0, "delta": { "tool_calls": [call] }, "finish_reason": null });
        let chunk = json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice] });
        answer.take(serde_json::from_value(chunk).expect("a chunk"));
        let mut ended = None;
        while let Some(step) = answer.steps.pop_front() {
            if let ChatEvent::ToolArgumentsDone { arguments, parsed_arguments, .. } =
                answer.event::<()>(step, None)
            {
                let end = arguments[arguments.len().saturating_sub(9)..].to_owned();
                ended = Some((end, parsed_arguments.is_some()));
            }
        }
        ended
    }

    /// It would take minutes if each turn parsed all that has arrived.
    #[test]
    fn calls_that_alternate_cost_as_much_as_their_own_text() {
        let mut answer = AnswerSoFar::new(false);
        ended(&mut answer, 0, &format!("[\"{}\"", "x".repeat(4 * 1024 * 1024)));
        for _ in 0..10_000 {
            let _of_the_first = ended(&mut answer, 1, " ");
            assert_eq!(ended(&mut answer, 0, ",0").map(|(_, is_json)| is_json), Some(false));
        }
        ended(&mut answer, 0, "]");
        assert_eq!(ended(&mut answer, 1, "{}"), Some((",0,0,0,0]".to_owned(), true)));
    }
}
