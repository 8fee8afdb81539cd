//! Answers, whole and in pieces.

use std::ops::Range;

use serde_json::{Map, Value};

use super::{Given, Media, Part, Place, Protocol, Source};
use crate::bounds::tree;

/// What a citation takes beside its texts, in bytes: about as much as an object with its members.
const CITATION_BYTES: usize = 1024;

/// A whole answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Answer {
    /// The protocol of the provider; unknown kinds are of it.
    pub(crate) source: Protocol,
    /// The provider's id of it.
    pub(crate) id: Option<String>,
    /// The model that answered, as the provider calls it.
    pub(crate) model: Option<String>,
    /// Unix time in seconds.
    pub(crate) created: Option<u64>,
    pub(crate) choices: Vec<Choice>,
    pub(crate) usage: Option<Usage>,
    pub(crate) service_tier: Option<String>,
    /// Members that the neutral form has no place for, with their places in the provider's answer.
    pub(crate) extra: Vec<Given<Value>>,
    /// Members that say nothing to another protocol.
    pub(crate) own: Vec<Given<Value>>,
}

/// One of the answers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Choice {
    /// Where the provider wrote it.
    pub(crate) at: Place,
    pub(crate) parts: Vec<Part>,
    pub(crate) citations: Vec<Citation>,
    pub(crate) end: Option<End>,
    /// Log probabilities in the form of the chat protocol: an array of tokens.
    pub(crate) logprobs: Option<Value>,
}

/// What words of an answer rest on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Citation {
    pub(crate) url: Option<String>,
    pub(crate) title: Option<String>,
    /// Words of the source.
    pub(crate) quote: Option<String>,
    /// Which words: characters of the text of the choice, all its parts in a row. `None`: nobody says.
    pub(crate) span: Option<Range<usize>>,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// It is complete.
    Stop,
    /// A stop sequence was reached: this one, where the provider tells.
    StopSequence(Option<String>),
    Length,
    ToolCalls,
    /// The provider withheld content.
    Filtered,
    /// The model refused.
    Refusal,
    /// The turn is not over: the client sends it back to go on.
    Paused,
    /// The provider or its model broke down, by this word of the provider's: the answer is not complete.
    Failed {
        source: Protocol,
        word: String,
    },
    /// A word of the provider's own, which only its protocol, the `source`, knows. To others the answer is complete.
    Other {
        source: Protocol,
        word: String,
    },
}

/// Tokens, as far as the provider counted them. `input` contains the cached ones, `output` those of reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    /// Tokens of the input that came from a cache.
    pub(crate) cached: Option<u64>,
    /// Tokens of the input that were written to a cache.
    pub(crate) cache_write: Option<u64>,
    pub(crate) reasoning: Option<u64>,
}

/// A piece of a stream. Pieces of one part follow each other; a part ends where another begins or the choice ends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Delta {
    /// The first of all.
    Started {
        id: Option<String>,
        model: Option<String>,
        created: Option<u64>,
    },
    Text {
        choice: u32,
        text: String,
        logprobs: Option<Value>,
    },
    Refusal {
        choice: u32,
        text: String,
    },
    /// Text of a thought. `thought`: its place among the thoughts of the choice, which ties its pieces and its proof
    /// together. `id`: with its first piece alone. `part`: which of its texts.
    Thought {
        choice: u32,
        thought: u32,
        id: Option<String>,
        part: u32,
        text: String,
        summary: bool,
    },
    /// The opaque end of a thought: its proof, or all of one that is hidden. `id`: also where a piece told it before.
    ThoughtSigned {
        choice: u32,
        thought: u32,
        id: Option<String>,
        signature: String,
        redacted: bool,
    },
    /// A call begins. `call`: its place among the calls of the choice. A provider's stream may tell a call before its name
    /// or its id is known, each empty, and the same call again with them (`protocols/sequence.rs`).
    Call {
        choice: u32,
        call: u32,
        id: String,
        name: String,
        custom: bool,
        signature: Option<String>,
    },
    /// Text of the call's input.
    CallInput {
        choice: u32,
        call: u32,
        text: String,
    },
    /// The input of a call is whole. Only a provider's stream says it: the sequencer takes it out.
    CallDone {
        choice: u32,
        call: u32,
    },
    /// A picture, whole.
    Image {
        choice: u32,
        image: Media,
    },
    /// A part that only the protocol of the provider, the `source`, knows, whole.
    Other {
        choice: u32,
        source: Protocol,
        value: Value,
    },
    /// What words that came before rest on.
    Citation {
        choice: u32,
        citation: Citation,
    },
    /// A member that the neutral form has no place for, with its place in the provider's event.
    Extra(Given<Value>),
    /// What is known of the usage so far; the last one counts.
    Usage(Usage),
    /// A choice is complete.
    Ended {
        choice: u32,
        end: End,
    },
    /// The provider failed in mid-stream: nothing follows.
    Failed(Failure),
    /// The stream is complete.
    Done,
}

impl Delta {
    /// The memory that it takes where it is kept, in bytes.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Text { text, logprobs, .. } => text.len() + logprobs.as_ref().map_or(0, tree::bytes),
            Self::Refusal { text, .. } | Self::CallInput { text, .. } => text.len(),
            Self::Thought { id, text, .. } => id.as_ref().map_or(0, String::len) + text.len(),
            Self::ThoughtSigned { id, signature, .. } => id.as_ref().map_or(0, String::len) + signature.len(),
            Self::Call { id, name, signature, .. } => {
                id.len() + name.len() + signature.as_ref().map_or(0, String::len)
            }
            Self::Image { image, .. } => {
                let (Source::Inline(text) | Source::Url(text) | Source::FileId(text)) = &image.source;
                text.len()
            }
            Self::Other { value, .. } => tree::bytes(value),
            Self::Citation { citation: Citation { url, title, quote, .. }, .. } => {
                let texts = [url, title, quote].into_iter().flatten();
                CITATION_BYTES + texts.map(String::len).sum::<usize>()
            }
            Self::Extra(given) => given.at.len() + tree::bytes(&given.value),
            _ => 0,
        }
    }

    /// The choice that it is a part of.
    pub(crate) fn choice(&self) -> Option<u32> {
        match self {
            Self::Text { choice, .. }
            | Self::Refusal { choice, .. }
            | Self::Thought { choice, .. }
            | Self::ThoughtSigned { choice, .. }
            | Self::Call { choice, .. }
            | Self::CallInput { choice, .. }
            | Self::CallDone { choice, .. }
            | Self::Image { choice, .. }
            | Self::Other { choice, .. }
            | Self::Citation { choice, .. }
            | Self::Ended { choice, .. } => Some(*choice),
            Self::Started { .. } | Self::Extra(_) | Self::Usage(_) | Self::Failed(_) | Self::Done => None,
        }
    }
}

/// An error of a provider, in neutral words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// In the provider's words; foreign text.
    pub(crate) message: String,
    /// The provider's code for it, where it has one.
    pub(crate) code: Option<String>,
    /// The member of the request at fault, in the provider's words.
    pub(crate) param: Option<String>,
    /// What else its document says.
    pub(crate) beyond: Option<Box<ProviderExtra>>,
}

/// What a provider's error says beyond the words that all protocols have: for clients of its protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderExtra {
    pub(crate) protocol: Protocol,
    /// Further members of the error.
    pub(crate) error: Map<String, Value>,
    /// Members beside the error.
    pub(crate) beside: Map<String, Value>,
}

impl ProviderExtra {
    /// Writes it into the gateway's own document of the error, in the same protocol. Members that the document has stay as they
    /// are, with two exceptions: the name of the kind of error is the provider's, and its details stand before the gateway's.
    pub(crate) fn write(&self, document: &mut Value) {
        let Some(error) = document["error"].as_object_mut() else { return };
        for (name, value) in &self.error {
            match (name.as_str(), value) {
                ("type" | "status", Value::String(_)) => {
                    error.insert(name.clone(), value.clone());
                }
                ("details", Value::Array(theirs)) => {
                    let mut details = theirs.clone();
                    if let Some(Value::Array(ours)) = error.insert(name.clone(), Value::Null) {
                        let is_new =
                            |ours: &Value| theirs.iter().all(|theirs| theirs["@type"] != ours["@type"]);
                        details.extend(ours.into_iter().filter(is_new));
                    }
                    error.insert(name.clone(), details.into());
                }
                _ => {
                    error.entry(name.as_str()).or_insert_with(|| value.clone());
                }
            }
        }
        if let Some(document) = document.as_object_mut() {
            for (name, value) in &self.beside {
                document.entry(name.as_str()).or_insert_with(|| value.clone());
            }
        }
    }
}

impl Failure {
    /// An error that the gateway puts into words.
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), code: None, param: None, beyond: None }
    }
}

/// What kind of error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    InvalidRequest,
    /// The provider does not accept the gateway's key.
    Authentication,
    PermissionDenied,
    NotFound,
    TooLarge,
    RateLimited,
    /// The account has no money or quota left.
    QuotaExceeded,
    Timeout,
    Overloaded,
    Server,
}
