//! Answers, whole and in pieces.

use std::ops::Range;

use serde_json::{Map, Value};

use super::{JsonPointer, Located, Media, MediaSource, Part, Protocol};
use crate::bounds::tree;

/// Memory of a citation besides its texts, in bytes: roughly an object with its fields.
const CITATION_BYTES: usize = 1024;

/// A whole answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Answer {
    /// The provider's protocol. Unknown kinds belong to it.
    pub(crate) source: Protocol,
    /// The provider's id for it.
    pub(crate) id: Option<String>,
    /// The model that answered, under the provider's name.
    pub(crate) model: Option<String>,
    /// Unix time in seconds.
    pub(crate) created: Option<u64>,
    pub(crate) choices: Vec<Choice>,
    pub(crate) usage: Option<Usage>,
    pub(crate) service_tier: Option<String>,
    /// Fields without a neutral form, with their places in the provider's answer.
    pub(crate) extra: Vec<Located<Value>>,
    /// Fields that mean nothing to another protocol.
    pub(crate) own: Vec<Located<Value>>,
}

/// One of the answers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Choice {
    /// Where the provider wrote it.
    pub(crate) at: JsonPointer,
    pub(crate) parts: Vec<Part>,
    pub(crate) citations: Vec<Citation>,
    pub(crate) end: Option<FinishReason>,
    /// Log probabilities in the chat format: an array of tokens.
    pub(crate) logprobs: Option<Value>,
}

/// A source that part of an answer is based on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Citation {
    pub(crate) url: Option<String>,
    pub(crate) title: Option<String>,
    /// A quote from the source.
    pub(crate) quote: Option<String>,
    /// The cited range: characters of the choice's text, all parts concatenated. `None`: unknown.
    pub(crate) span: Option<Range<usize>>,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FinishReason {
    /// It is complete.
    Stop,
    /// A stop sequence was reached: this one, if the provider names it.
    StopSequence(Option<String>),
    Length,
    ToolCalls,
    /// The provider withheld content.
    Filtered,
    /// The model refused.
    Refusal,
    /// The turn isn't over: the client sends it back to continue.
    Paused,
    /// The provider or its model failed with this reason: the answer is incomplete.
    Failed {
        source: Protocol,
        word: String,
    },
    /// A provider-specific reason that only its protocol, the `source`, knows. Other protocols treat the
    /// answer as complete.
    Other {
        source: Protocol,
        word: String,
    },
}

/// Token counts, as far as the provider reports them. `input` includes cached tokens, `output` includes
/// reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    /// Input tokens read from a cache.
    pub(crate) cached: Option<u64>,
    /// Input tokens written to a cache.
    pub(crate) cache_write: Option<u64>,
    pub(crate) reasoning: Option<u64>,
}

/// A piece of a stream. Pieces of one part are consecutive; a part ends where another begins or the choice
/// ends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Delta {
    /// Always the first delta.
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
    /// Text of a thought. `thought`: its index among the choice's thoughts, which ties its pieces and its
    /// proof together. `id`: only with its first piece. `part`: which of its texts.
    Thought {
        choice: u32,
        thought: u32,
        id: Option<String>,
        part: u32,
        text: String,
        summary: bool,
    },
    /// The opaque end of a thought: its proof, or all of a hidden one. `id`: repeated even if an earlier
    /// piece had it.
    ThoughtSigned {
        choice: u32,
        thought: u32,
        id: Option<String>,
        signature: String,
        redacted: bool,
    },
    /// A call begins. `call`: its index among the choice's calls. A provider's stream may report a call
    /// before its name or id is known (each empty then), and the same call again with them
    /// (`protocols/sequence.rs`).
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
    /// The input of a call is complete. Only provider streams emit this: the sequencer removes it.
    CallDone {
        choice: u32,
        call: u32,
    },
    /// A complete image.
    Image {
        choice: u32,
        image: Media,
    },
    /// A complete part that only the provider's protocol, the `source`, knows.
    Other {
        choice: u32,
        source: Protocol,
        value: Value,
    },
    /// A citation for text that came before.
    Citation {
        choice: u32,
        citation: Citation,
    },
    /// A field without a neutral form, with its place in the provider's event.
    Extra(Located<Value>),
    /// The usage so far; the last one counts.
    Usage(Usage),
    /// A choice is complete.
    Ended {
        choice: u32,
        end: FinishReason,
    },
    /// The provider failed mid-stream: nothing follows.
    Failed(Failure),
    /// The stream is complete.
    Done,
}

impl Delta {
    /// Memory that a stored copy takes, in bytes.
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
                let (MediaSource::Inline(text) | MediaSource::Url(text) | MediaSource::FileId(text)) =
                    &image.source;
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

    /// The choice it belongs to.
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

/// A provider's error in neutral form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// The provider's message: untrusted text.
    pub(crate) message: String,
    /// The provider's error code, if any.
    pub(crate) code: Option<String>,
    /// The request field at fault, as the provider names it.
    pub(crate) param: Option<String>,
    /// Whatever else the error document contains.
    pub(crate) beyond: Option<Box<ProviderExtra>>,
}

/// What a provider's error contains beyond the fields all protocols share: for clients of its protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderExtra {
    pub(crate) protocol: Protocol,
    /// Further fields of the error.
    pub(crate) error: Map<String, Value>,
    /// Fields next to the error.
    pub(crate) beside: Map<String, Value>,
}

impl ProviderExtra {
    /// Merges it into the gateway's own error document of the same protocol. Existing fields stay, with two
    /// exceptions: the error type is the provider's, and its details come before the gateway's.
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
    /// An error worded by the gateway.
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), code: None, param: None, beyond: None }
    }
}

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    InvalidRequest,
    /// The provider rejects the gateway's key.
    Authentication,
    PermissionDenied,
    NotFound,
    TooLarge,
    RateLimited,
    /// The account is out of credit or quota.
    QuotaExceeded,
    Timeout,
    Overloaded,
    Server,
}
