//! Answers in the neutral form, whole and in pieces.

use std::collections::VecDeque;

use gatewright_protocol::conversation::{
    Answer, Choice, Delta, FinishReason, Input, Part, PartKind, Protocol, ToolCall, Usage,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::budget::{Budget, BudgetExceeded};
use crate::conversation::{Finish, Prompt, Reply, ReplyContent, SimulatedCall};
use crate::logprobs::Logprobs;
use crate::reading::INPUT;
use crate::tokens;

/// An answer of the simulator belongs to no protocol. No client speaks this one, so none takes the answer for a document of
/// its own protocol.
pub(crate) const SOURCE: Protocol = Protocol::Converse;

/// The answer to a conversation: one choice or several.
#[derive(Debug)]
pub struct SimulatedAnswer {
    choices: Vec<SimulatedChoice>,
    logprobs: Option<Logprobs>,
    usage: Usage,
    service_tier: Option<String>,
}

#[derive(Debug)]
struct SimulatedChoice {
    content: ChoiceContent,
    end: FinishReason,
}

#[derive(Debug)]
enum ChoiceContent {
    Text(String),
    Calls(Vec<ToolCall>),
}

impl SimulatedAnswer {
    pub(crate) fn new(
        replies: Vec<Reply>,
        prompt: &Prompt,
        logprobs: Option<Logprobs>,
        service_tier: Option<String>,
    ) -> Self {
        // The prompt is read once, whatever the number of choices.
        let input = replies.first().map_or(0, |reply| reply.usage.input);
        let usage = usage(input, replies.iter().map(|reply| reply.usage.output).sum());
        let choices = replies.into_iter().map(|reply| SimulatedChoice::new(reply, prompt)).collect();
        Self { choices, logprobs, usage, service_tier }
    }

    /// Charges the log probabilities, which are in memory this many times.
    pub fn charge_logprobs(&self, times: usize, budget: &Budget) -> Result<(), BudgetExceeded> {
        let Some(logprobs) = self.logprobs else { return Ok(()) };
        for choice in &self.choices {
            if let ChoiceContent::Text(text) = &choice.content {
                logprobs.charge(text, times, budget)?;
            }
        }
        Ok(())
    }

    /// All of it.
    pub fn whole(&self) -> Answer {
        Answer {
            source: SOURCE,
            choices: self.choices.iter().map(|choice| choice.whole(self.logprobs)).collect(),
            usage: Some(self.usage),
            service_tier: self.service_tier.clone(),
            ..Answer::default()
        }
    }

    /// Its pieces, a token each, alternating between the choices. Each is made when it is taken.
    pub fn deltas(self) -> impl Iterator<Item = Delta> + Send + use<> {
        let Self { choices, logprobs, usage, service_tier } = self;
        let input = Usage { output: None, reasoning: None, ..usage };
        let started = Delta::Started { id: None, model: None, created: None, service_tier };
        let mut waiting: VecDeque<_> =
            (0..).zip(choices).map(|(index, choice)| choice.deltas(index, logprobs)).collect();
        let pieces = std::iter::from_fn(move || {
            loop {
                let mut choice = waiting.pop_front()?;
                if let Some(delta) = choice.next() {
                    waiting.push_back(choice);
                    return Some(delta);
                }
            }
        });
        [Delta::Usage(input), started].into_iter().chain(pieces).chain([Delta::Usage(usage), Delta::Done])
    }
}

impl SimulatedChoice {
    fn new(reply: Reply, prompt: &Prompt) -> Self {
        let end = match reply.finish {
            Finish::Stop => FinishReason::Stop,
            Finish::StopSequence(index) => FinishReason::StopSequence(prompt.stop.get(index).cloned()),
            Finish::Length => FinishReason::Length,
            Finish::ToolCalls => FinishReason::ToolCalls,
        };
        let content = match reply.content {
            ReplyContent::Text(text) => ChoiceContent::Text(text),
            ReplyContent::ToolCalls(calls) => {
                ChoiceContent::Calls(calls.into_iter().map(|call| tool_call(call, prompt)).collect())
            }
        };
        Self { content, end }
    }

    fn whole(&self, logprobs: Option<Logprobs>) -> Choice {
        let part = |kind| Part { at: "".into(), kind, cache: None };
        let end = Some(self.end.clone());
        match &self.content {
            ChoiceContent::Text(text) => Choice {
                parts: vec![part(PartKind::Text(text.clone()))],
                logprobs: logprobs.map(|logprobs| logprobs.of(text)),
                end,
                ..Choice::default()
            },
            ChoiceContent::Calls(calls) => Choice {
                parts: calls.iter().map(|call| part(PartKind::Call(call.clone()))).collect(),
                end,
                ..Choice::default()
            },
        }
    }

    fn deltas(self, choice: u32, logprobs: Option<Logprobs>) -> Box<dyn Iterator<Item = Delta> + Send> {
        let ended = std::iter::once(Delta::Ended { choice, end: self.end });
        match self.content {
            ChoiceContent::Text(text) => {
                // An empty text is a part, too.
                let none = text.is_empty().then(String::new);
                let pieces = none.into_iter().chain(tokens::owned_pieces(text)).enumerate();
                let pieces = pieces.map(move |(place, text)| {
                    let logprobs = logprobs.map(|logprobs| json!([logprobs.token(place, &text)]));
                    Delta::Text { choice, text, logprobs }
                });
                Box::new(pieces.chain(ended))
            }
            ChoiceContent::Calls(calls) => {
                let calls = (0..).zip(calls).flat_map(move |(index, call)| call_deltas(choice, index, call));
                Box::new(calls.chain(ended))
            }
        }
    }
}

/// The pieces of a call: its beginning, then its input.
fn call_deltas(choice: u32, call: u32, made: ToolCall) -> impl Iterator<Item = Delta> + Send {
    let ToolCall { id, name, input, signature } = made;
    let (custom, text) = match input {
        Input::Json(text) => (false, text),
        Input::Text(text) => (true, text),
    };
    let first = Delta::Call { choice, call, id, name, custom, signature };
    let pieces = tokens::owned_pieces(text).map(move |text| Delta::CallInput { choice, call, text });
    std::iter::once(first).chain(pieces)
}

/// A call as the client knows its tool.
fn tool_call(call: SimulatedCall, prompt: &Prompt) -> ToolCall {
    let SimulatedCall { name, arguments } = call;
    let input = if prompt.custom_tools.contains(&name) {
        let arguments: Value = serde_json::from_str(&arguments).unwrap_or_default();
        Input::Text(arguments[INPUT].as_str().unwrap_or_default().to_owned())
    } else {
        Input::Json(arguments)
    };
    ToolCall { id: format!("call_{}", Uuid::new_v4().simple()), name, input, signature: None }
}

/// Token counts: nothing is cached, and no token is spent on reasoning.
pub(crate) fn usage(input: usize, output: usize) -> Usage {
    let count = |tokens: usize| u64::try_from(tokens).ok();
    Usage {
        input: count(input),
        output: count(output),
        cached: Some(0),
        cache_write: None,
        reasoning: Some(0),
    }
}

#[cfg(test)]
mod tests {
    use gatewright_protocol::conversation::{Conversation, Located, Role, Turn};

    use super::*;

    fn conversation(text: &str) -> Conversation {
        let part = Part { at: "".into(), kind: PartKind::Text(text.to_owned()), cache: None };
        let turn = Turn { at: "".into(), role: Role::User, name: None, parts: vec![part] };
        Conversation { turns: vec![turn], ..Conversation::default() }
    }

    fn answer(conversation: Conversation) -> SimulatedAnswer {
        crate::answer(conversation, &Budget::new()).expect("an answer")
    }

    #[test]
    fn pieces_add_up_to_the_whole_answer() {
        let conversation_with_settings =
            Conversation { choices: Some(Located::new(3, "/n")), ..conversation("Tell me about rivers") };
        let answer = answer(conversation_with_settings);
        let whole = answer.whole();
        let mut texts = vec![String::new(); 3];
        let deltas: Vec<Delta> = answer.deltas().collect();
        for delta in &deltas {
            if let Delta::Text { choice, text, .. } = delta {
                texts[*choice as usize].push_str(text);
            }
        }
        let expected: Vec<&str> = whole
            .choices
            .iter()
            .map(|choice| match &choice.parts[0].kind {
                PartKind::Text(text) => text.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(texts, expected);
        assert!(matches!(deltas[..2], [Delta::Usage(_), Delta::Started { .. }]), "{:?}", &deltas[..2]);
        assert_eq!(deltas[deltas.len() - 2..], [Delta::Usage(whole.usage.expect("counts")), Delta::Done]);
    }

    #[test]
    fn reached_stop_sequence_is_named() {
        let stop = vec![Located::new("9".to_owned(), "/stop/0"), Located::new("4".to_owned(), "/stop/1")];
        let answer = answer(Conversation { stop, ..conversation("Count to 5") }).whole();
        assert_eq!(answer.choices[0].end, Some(FinishReason::StopSequence(Some("4".to_owned()))));
    }

    #[test]
    fn empty_text_is_a_piece() {
        let conversation_with_settings =
            Conversation { max_tokens: Some(Located::new(0, "/max_tokens")), ..conversation("Say hi") };
        let texts = answer(conversation_with_settings)
            .deltas()
            .filter(|delta| matches!(delta, Delta::Text { .. }))
            .count();
        assert_eq!(texts, 1);
    }
}
