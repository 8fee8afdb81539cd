//! What an answer adds up to, whole or in pieces.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::conversation::{Answer, Citation, Delta, FinishReason, Input, PartKind, Protocol, Thought, Usage};

/// What an answer adds up to.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Amounts {
    choices: BTreeMap<u32, ChoiceContent>,
    usage: Option<Usage>,
}

/// What a choice says.
#[derive(Debug, Default, PartialEq)]
struct ChoiceContent {
    pieces: Vec<Piece>,
    citations: Vec<Citation>,
    tokens: Vec<Value>,
    end: Option<FinishReason>,
    /// The index of each call among the pieces.
    calls: Vec<usize>,
    /// The index of each of a stream's thoughts among the pieces, by its number.
    thoughts: BTreeMap<u32, usize>,
}

/// An uninterrupted text, a thought, a call, or a provider-specific part.
#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    Text(String),
    Refusal(String),
    /// With all of its texts.
    Thought {
        id: Option<String>,
        text: Vec<String>,
        summary: bool,
        proof: Option<String>,
        redacted: bool,
    },
    Call {
        id: String,
        name: String,
        custom: bool,
        input: String,
        proof: Option<String>,
    },
    Other(Value),
}

impl Amounts {
    /// From a whole answer.
    pub(super) fn of_answer(answer: Answer) -> Self {
        let is_native = answer.source == Protocol::Native;
        let mut amounts = Self { usage: answer.usage, ..Self::default() };
        for (index, choice) in (0..).zip(answer.choices) {
            let content = amounts.choices.entry(index).or_default();
            for part in choice.parts {
                content.part(part.kind);
                if is_native {
                    content.join_thoughts();
                }
            }
            (content.citations, content.end) = (choice.citations, choice.end);
            if let Some(Value::Array(tokens)) = choice.logprobs {
                content.tokens = tokens;
            }
        }
        amounts.sorted()
    }

    /// From a stream.
    pub(super) fn of_stream(deltas: &[Delta]) -> Self {
        let mut amounts = Self::default();
        for delta in deltas.iter().cloned() {
            match delta {
                Delta::Text { choice, text, logprobs } => {
                    let content = amounts.choice(choice);
                    content.text(&text);
                    if let Some(Value::Array(tokens)) = logprobs {
                        content.tokens.extend(tokens);
                    }
                }
                Delta::Refusal { choice, text } => amounts.choice(choice).refusal(&text),
                Delta::Thought { choice, thought, id, part, text, summary } => {
                    amounts.choice(choice).think(thought, (id, summary), (part, &text));
                }
                Delta::ThoughtSigned { choice, thought, id, signature, redacted } => {
                    amounts.choice(choice).prove(thought, id, signature, redacted);
                }
                Delta::Call { choice, call, id, name, custom, signature } => {
                    let content = amounts.choice(choice);
                    assert_eq!(call as usize, content.calls.len(), "calls come in order");
                    content.call(id, name, custom, signature);
                }
                Delta::CallInput { choice, call, text } => {
                    amounts.choice(choice).input(call as usize, &text);
                }
                Delta::Other { choice, value, .. } => amounts.choice(choice).other(value),
                Delta::Citation { choice, citation } => amounts.choice(choice).citations.push(citation),
                Delta::Usage(usage) => amounts.usage = Some(usage),
                Delta::Ended { choice, end } => amounts.choice(choice).end = Some(end),
                // Media are not compared.
                Delta::Image { .. } | Delta::Started { .. } | Delta::Extra(_) | Delta::Done => {}
                Delta::CallDone { .. } => panic!("only a reader inside of the sequencer emits it"),
                Delta::Failed(failure) => panic!("{failure:?} was never written"),
            }
        }
        amounts.sorted()
    }

    fn choice(&mut self, index: u32) -> &mut ChoiceContent {
        self.choices.entry(index).or_default()
    }

    /// The order of citations and the numbers of thoughts don't matter. A usage that counts nothing is the same as none:
    /// some protocols require one.
    fn sorted(mut self) -> Self {
        for content in self.choices.values_mut() {
            content.citations.sort_by_key(|citation| format!("{citation:?}"));
            content.thoughts.clear();
            for piece in &mut content.pieces {
                // Without text it is an empty summary.
                if let Piece::Thought { text, summary, .. } = piece {
                    text.retain(|text| !text.is_empty());
                    *summary &= !text.is_empty();
                }
            }
        }
        let counts = |usage: &Usage| usage.input.unwrap_or(0) + usage.output.unwrap_or(0) > 0;
        // Missing counts are 0 in protocols that require the count.
        self.usage = self.usage.filter(counts).map(|usage| Usage {
            cached: usage.cached.filter(|tokens| *tokens > 0),
            cache_write: usage.cache_write.filter(|tokens| *tokens > 0),
            reasoning: usage.reasoning.filter(|tokens| *tokens > 0),
            ..usage
        });
        self
    }

    /// Forgets which text a source supports.
    pub(super) fn forget_places(&mut self) {
        for content in self.choices.values_mut() {
            content.citations.iter_mut().for_each(|citation| citation.span = None);
            content.citations.sort_by_key(|citation| format!("{citation:?}"));
        }
    }

    /// The thoughts of the first choice.
    pub(super) fn into_thoughts(mut self) -> Vec<Piece> {
        let content = self.choices.remove(&0).unwrap_or_default();
        content.pieces.into_iter().filter(|piece| matches!(piece, Piece::Thought { .. })).collect()
    }

    /// Takes the citations out, each with its choice.
    pub(super) fn take_citations(&mut self) -> Vec<(u32, Citation)> {
        let of_choice = |(index, content): (&u32, &mut ChoiceContent)| {
            let cited = std::mem::take(&mut content.citations).into_iter();
            cited.map(|citation| (*index, citation)).collect::<Vec<_>>()
        };
        self.choices.iter_mut().flat_map(of_choice).collect()
    }

    /// What it adds up to after being written again.
    pub(super) fn written(mut self) -> Self {
        for content in self.choices.values_mut() {
            for citation in &mut content.citations {
                // Clients expect a title next to a URL.
                citation.title = citation.title.take().or_else(|| citation.url.clone());
            }
            for piece in &mut content.pieces {
                match piece {
                    // Generated call ids are numbered as they are read.
                    Piece::Call { id, .. } if id.starts_with("call_native_") => id.clear(),
                    // Some protocols number thoughts themselves.
                    Piece::Thought { id, .. } => *id = None,
                    _ => {}
                }
            }
            // Agents execute calls only if the finish reason says so.
            if content.end == Some(FinishReason::Stop) && !content.calls.is_empty() {
                content.end = Some(FinishReason::ToolCalls);
            }
        }
        // Spans beyond the text are clamped to its end.
        self.forget_places();
        self
    }
}

impl ChoiceContent {
    fn part(&mut self, kind: PartKind) {
        match kind {
            PartKind::Text(text) => self.text(&text),
            PartKind::Refusal(text) => self.refusal(&text),
            PartKind::Thought(Thought { id, mut text, summary, signature: proof, redacted }) => {
                text.retain(|text| !text.is_empty());
                if !text.is_empty() || proof.is_some() {
                    self.pieces.push(Piece::Thought { id, text, summary, proof, redacted });
                }
            }
            PartKind::Call(call) => {
                let (custom, input) = match call.input {
                    Input::Json(text) => (false, text),
                    Input::Text(text) => (true, text),
                };
                let number = self.calls.len();
                self.call(call.id, call.name, custom, call.signature);
                self.input(number, &input);
            }
            PartKind::Other(value) => self.other(value),
            // Media have no pieces in the neutral form.
            PartKind::Image(_) | PartKind::Audio(_) | PartKind::File(_) => {}
            PartKind::Result(result) => panic!("{result:?} was never written"),
        }
    }

    /// A native thought without a proof continues with the next one: their pieces are indistinguishable.
    fn join_thoughts(&mut self) {
        if let [.., Piece::Thought { text, summary: true, proof: None, .. }, Piece::Thought { .. }] =
            self.pieces.as_mut_slice()
        {
            let started = text.concat();
            match self.pieces.last_mut() {
                Some(Piece::Thought { text, summary: true, .. }) => *text = vec![started + &text.concat()],
                _ => return,
            }
            self.pieces.remove(self.pieces.len() - 2);
        }
    }

    fn text(&mut self, more: &str) {
        match self.pieces.last_mut() {
            _ if more.is_empty() => {}
            Some(Piece::Text(text)) => text.push_str(more),
            _ => self.pieces.push(Piece::Text(more.to_owned())),
        }
    }

    fn refusal(&mut self, more: &str) {
        match self.pieces.last_mut() {
            _ if more.is_empty() => {}
            Some(Piece::Refusal(text)) => text.push_str(more),
            _ => self.pieces.push(Piece::Refusal(more.to_owned())),
        }
    }

    /// Appends to the thought with this number, or to one of its texts.
    fn think(&mut self, thought: u32, (id, summary): (Option<String>, bool), (part, more): (u32, &str)) {
        let piece = self.numbered(thought, summary);
        let Piece::Thought { id: known, text, proof: None, .. } = piece else {
            panic!("{more} follows the proof of its thought");
        };
        assert!(id.is_none() || known.is_none(), "the id is delivered once");
        *known = known.take().or(id);
        let part = part as usize;
        assert!(part <= text.len(), "texts of a thought follow each other");
        if part == text.len() {
            text.push(String::new());
        }
        text[part].push_str(more);
    }

    fn prove(&mut self, thought: u32, id: Option<String>, signature: String, is_hidden: bool) {
        let Piece::Thought { id: known, proof: proof @ None, redacted, .. } = self.numbered(thought, false)
        else {
            panic!("a thought has two proofs");
        };
        *known = known.take().or(id);
        (*proof, *redacted) = (Some(signature), is_hidden);
    }

    fn numbered(&mut self, thought: u32, summary: bool) -> &mut Piece {
        let place = *self.thoughts.entry(thought).or_insert_with(|| {
            self.pieces.push(Piece::Thought {
                id: None,
                text: Vec::new(),
                summary,
                proof: None,
                redacted: false,
            });
            self.pieces.len() - 1
        });
        &mut self.pieces[place]
    }

    fn call(&mut self, id: String, name: String, custom: bool, proof: Option<String>) {
        self.calls.push(self.pieces.len());
        self.pieces.push(Piece::Call { id, name, custom, input: String::new(), proof });
    }

    fn input(&mut self, call: usize, more: &str) {
        if let Piece::Call { input, .. } = &mut self.pieces[self.calls[call]] {
            input.push_str(more);
        }
    }

    fn other(&mut self, value: Value) {
        // Media, as in a whole answer.
        if value.get("inlineData").is_none() && value.get("fileData").is_none() {
            self.pieces.push(Piece::Other(value));
        }
    }
}
