//! Stop sequences for providers whose protocol has none: the gateway ends the answer at the first complete one.

use std::collections::HashMap;

use serde_json::Value;

use crate::conversation::{
    Answer, Choice, Conversation, Delta, FinishReason, JsonPointer, Located, Part, PartKind,
};
use crate::tree;

/// Maximum number of stop sequences that the gateway searches for. Each costs work for every byte of an answer.
const MAX_SEQUENCES: usize = 16;
/// Maximum length of such a stop sequence, in bytes. A stream buffers as much of its text.
const MAX_SEQUENCE_BYTES: usize = 1024;

/// The stop sequences of a request that the gateway searches for.
fn searched(conversation: &Conversation) -> impl Iterator<Item = &Located<String>> {
    let is_searched =
        |stop: &&Located<String>| !stop.value.is_empty() && stop.value.len() <= MAX_SEQUENCE_BYTES;
    conversation.stop.iter().filter(is_searched).take(MAX_SEQUENCES)
}

/// Where the client wrote stop sequences that the gateway doesn't search for.
pub(super) fn lost(conversation: &Conversation) -> impl Iterator<Item = &JsonPointer> {
    let known: Vec<&JsonPointer> = searched(conversation).map(|stop| &stop.at).collect();
    let others = conversation.stop.iter().filter(|stop| !stop.value.is_empty()).map(|stop| &stop.at);
    others.filter(move |at| !known.contains(at))
}

/// Searches an answer for the stop sequences of its request.
#[derive(Debug, Clone)]
pub(super) struct StopSequences {
    sequences: Vec<StopSequence>,
    /// The choices of a stream.
    choices: HashMap<u32, SearchState>,
}

/// A stop sequence, prepared for byte-by-byte search (Knuth-Morris-Pratt).
#[derive(Debug, Clone)]
struct StopSequence {
    text: String,
    /// For each length of a prefix, the length of its longest proper prefix that is also its suffix.
    borders: Vec<usize>,
}

impl StopSequence {
    /// `text`: not empty.
    fn new(text: &str) -> Self {
        let mut sequence = Self { text: text.to_owned(), borders: Vec::with_capacity(text.len()) };
        let mut border = 0;
        sequence.borders.push(0);
        for &byte in &text.as_bytes()[1..] {
            border = sequence.after(border, byte);
            sequence.borders.push(border);
        }
        sequence
    }

    /// The matched length after one more byte. `matched`: less than the sequence's length.
    fn after(&self, mut matched: usize, byte: u8) -> usize {
        let bytes = self.text.as_bytes();
        while matched > 0 && bytes[matched] != byte {
            matched = self.borders[matched - 1];
        }
        matched + usize::from(bytes[matched] == byte)
    }
}

/// Search progress in the text of a choice.
#[derive(Debug, Clone)]
enum SearchState {
    Searching {
        /// For each sequence, the length of its prefix that the text ends with.
        matched: Vec<usize>,
        /// The end of the text, which may begin a sequence.
        held: String,
        /// Log probabilities of the buffered text.
        logprobs: Vec<Value>,
    },
    /// At this sequence.
    Stopped(usize),
}

impl SearchState {
    fn new(sequences: &[StopSequence]) -> Self {
        Self::Searching { matched: vec![0; sequences.len()], held: String::new(), logprobs: Vec::new() }
    }

    fn held_bytes(&self) -> usize {
        match self {
            Self::Searching { held, logprobs, .. } => {
                held.len() + logprobs.iter().map(tree::bytes).sum::<usize>()
            }
            Self::Stopped(_) => 0,
        }
    }
}

impl StopSequences {
    /// `None`: the request has no stop sequences.
    pub(super) fn new(conversation: &Conversation) -> Option<Self> {
        let sequences: Vec<_> = searched(conversation).map(|stop| StopSequence::new(&stop.value)).collect();
        (!sequences.is_empty()).then(|| Self { sequences, choices: HashMap::new() })
    }

    /// Number of buffered bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.choices.values().map(SearchState::held_bytes).sum()
    }

    /// Ends each choice of a whole answer where a stop sequence is complete.
    pub(super) fn answer(&self, answer: &mut Answer) {
        for choice in &mut answer.choices {
            self.choice(choice);
        }
    }

    fn choice(&self, choice: &mut Choice) {
        let Some((sequence, index, end)) = self.find_in(&choice.parts) else { return };
        if let PartKind::Text(text) = &mut choice.parts[index].kind {
            text.truncate(end);
        }
        choice.parts.truncate(index + usize::from(end > 0));
        let length = choice.parts.iter().map(characters).sum();
        choice.citations.retain(|citation| citation.span.as_ref().is_none_or(|span| span.end <= length));
        if let Some(Value::Array(tokens)) = &mut choice.logprobs {
            keep_tokens(tokens, length);
        }
        choice.end = Some(FinishReason::StopSequence(Some(self.sequences[sequence].text.clone())));
    }

    /// The sequence that is complete first, and where it begins: a part and a byte of its text. As in a stream, it may span
    /// consecutive texts.
    fn find_in(&self, parts: &[Part]) -> Option<(usize, usize, usize)> {
        let mut matched = vec![0; self.sequences.len()];
        // The consecutive texts so far: the part of each, and where its text begins in all of them.
        let (mut texts, mut length) = (Vec::new(), 0);
        for (index, part) in parts.iter().enumerate() {
            let PartKind::Text(text) = &part.kind else {
                matched.fill(0);
                (texts, length) = (Vec::new(), 0);
                continue;
            };
            texts.push((index, length));
            if let Some((sequence, end)) = find(&self.sequences, &mut matched, text) {
                let begin = length + end - self.sequences[sequence].text.len();
                let (index, start) = texts.into_iter().rfind(|(_, start)| *start <= begin)?;
                return Some((sequence, index, begin - start));
            }
            length += text.len();
        }
        None
    }

    /// Ends each choice of a stream where a stop sequence is complete. Text that may begin one is buffered.
    pub(super) fn deltas(&mut self, deltas: &mut Vec<Delta>) {
        for delta in std::mem::take(deltas) {
            self.delta(delta, deltas);
        }
    }

    fn delta(&mut self, delta: Delta, deltas: &mut Vec<Delta>) {
        let Some(choice) = choice_of(&delta) else {
            if delta == Delta::Done {
                let mut choices: Vec<u32> = self.choices.keys().copied().collect();
                choices.sort_unstable();
                for choice in choices {
                    self.release(choice, deltas);
                }
            }
            return deltas.push(delta);
        };
        let progress = self.choices.entry(choice).or_insert_with(|| SearchState::new(&self.sequences));
        match (progress, delta) {
            (SearchState::Stopped(sequence), Delta::Ended { .. }) => {
                let end = FinishReason::StopSequence(Some(self.sequences[*sequence].text.clone()));
                deltas.push(Delta::Ended { choice, end });
            }
            (SearchState::Stopped(_), _) => {}
            (progress @ SearchState::Searching { .. }, Delta::Text { text, logprobs, .. }) => {
                let SearchState::Searching { matched, held, logprobs: held_logprobs } = progress else {
                    return;
                };
                let before = held.len();
                let found = find(&self.sequences, matched, &text);
                held.push_str(&text);
                if let Some(Value::Array(tokens)) = logprobs {
                    held_logprobs.extend(tokens);
                }
                let (length, stopped) = match found {
                    Some((sequence, end)) => {
                        (before + end - self.sequences[sequence].text.len(), Some(sequence))
                    }
                    None => (held.len() - matched.iter().max().copied().unwrap_or(0), None),
                };
                let rest = held.split_off(length);
                let text = std::mem::replace(held, rest);
                let tokens = if stopped.is_some() || held.is_empty() {
                    let mut tokens = std::mem::take(held_logprobs);
                    if stopped.is_some() {
                        keep_tokens(&mut tokens, text.chars().count());
                    }
                    tokens
                } else {
                    Vec::new()
                };
                if let Some(sequence) = stopped {
                    *progress = SearchState::Stopped(sequence);
                }
                if !text.is_empty() {
                    let logprobs = (!tokens.is_empty()).then(|| tokens.into());
                    deltas.push(Delta::Text { choice, text, logprobs });
                }
            }
            (_, delta) => {
                // Stop sequences don't span other content.
                self.release(choice, deltas);
                deltas.push(delta);
            }
        }
    }

    /// Releases the buffered text of a choice.
    fn release(&mut self, choice: u32, deltas: &mut Vec<Delta>) {
        let Some(SearchState::Searching { matched, held, logprobs }) = self.choices.get_mut(&choice) else {
            return;
        };
        if held.is_empty() {
            return;
        }
        matched.fill(0);
        let (text, tokens) = (std::mem::take(held), std::mem::take(logprobs));
        deltas.push(Delta::Text { choice, text, logprobs: (!tokens.is_empty()).then(|| tokens.into()) });
    }
}

/// Continues the search. Returns the sequence that is complete first, and where it ends in `text`.
fn find(sequences: &[StopSequence], matched: &mut [usize], text: &str) -> Option<(usize, usize)> {
    for (place, byte) in text.bytes().enumerate() {
        for (index, (sequence, matched)) in sequences.iter().zip(&mut *matched).enumerate() {
            *matched = sequence.after(*matched, byte);
            if *matched == sequence.text.len() {
                return Some((index, place + 1));
            }
        }
    }
    None
}

/// Number of characters of a part's text.
fn characters(part: &Part) -> usize {
    match &part.kind {
        PartKind::Text(text) => text.chars().count(),
        _ => 0,
    }
}

/// Keeps the log probabilities of the first tokens that fit into this many characters.
fn keep_tokens(tokens: &mut Vec<Value>, characters: usize) {
    let mut length = 0;
    let within = tokens.iter().take_while(|token| {
        length += token["token"].as_str().map_or(0, |text| text.chars().count());
        length <= characters
    });
    let count = within.count();
    tokens.truncate(count);
}

/// The choice that a delta belongs to, if it is content.
fn choice_of(delta: &Delta) -> Option<u32> {
    match delta {
        Delta::Text { choice, .. }
        | Delta::Refusal { choice, .. }
        | Delta::Thought { choice, .. }
        | Delta::ThoughtSigned { choice, .. }
        | Delta::Call { choice, .. }
        | Delta::CallInput { choice, .. }
        | Delta::CallDone { choice, .. }
        | Delta::Citation { choice, .. }
        | Delta::Image { choice, .. }
        | Delta::Other { choice, .. }
        | Delta::Ended { choice, .. } => Some(*choice),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
