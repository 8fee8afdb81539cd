//! Answers, whole and in pieces.

use std::ops::Range;

use serde_json::{Map, Value};

use super::{JsonPointer, Located, Media, MediaSource, Part, Protocol};
use crate::output_estimate::hidden;
use crate::tree;

/// Memory of a citation besides its texts, in bytes: roughly an object with its fields.
const CITATION_BYTES: usize = 1024;

/// A whole answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The provider's protocol. Unknown kinds belong to it.
    pub source: Protocol,
    /// The provider's id for it.
    pub id: Option<String>,
    /// The model that answered, under the provider's name.
    pub model: Option<String>,
    /// Unix time in seconds.
    pub created: Option<u64>,
    /// The alternative answers to the request: usually one.
    pub choices: Vec<Choice>,
    /// Token counts of all choices together. `None`: the provider reports none.
    pub usage: Option<Usage>,
    /// The tier that served the request, as chat and responses name it. `None`: not reported.
    pub service_tier: Option<String>,
    /// Fields without a neutral form, with their places in the provider's answer.
    pub extra: Vec<Located<Value>>,
    /// Fields that mean nothing to another protocol.
    pub own: Vec<Located<Value>>,
}

/// One of the answers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    /// Where the provider wrote it.
    pub at: JsonPointer,
    /// The model's texts, thoughts and calls, in order.
    pub parts: Vec<Part>,
    /// The sources of its text.
    pub citations: Vec<Citation>,
    /// Why it ended. `None`: the provider doesn't say.
    pub end: Option<FinishReason>,
    /// Log probabilities in the chat format: an array of tokens.
    pub logprobs: Option<Value>,
}

/// A source that part of an answer is based on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Citation {
    /// Address of the source. `None`: it is a document without one.
    pub url: Option<String>,
    /// Title of the source, if the provider gives one.
    pub title: Option<String>,
    /// A quote from the source.
    pub quote: Option<String>,
    /// The cited range: characters of the choice's text, all parts concatenated. `None`: unknown.
    pub span: Option<Range<usize>>,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    /// It is complete.
    Stop,
    /// A stop sequence was reached: this one, if the provider names it.
    StopSequence(Option<String>),
    /// The limit on tokens, or the end of the model's context, was reached.
    Length,
    /// The model waits for the results of its calls.
    ToolCalls,
    /// The provider withheld content.
    Filtered,
    /// The model refused.
    Refusal,
    /// The turn isn't over: the client sends it back to continue.
    Paused,
    /// The provider or its model failed with this reason: the answer is incomplete.
    Failed {
        /// The protocol the word belongs to.
        source: Protocol,
        /// The reason as the provider wrote it.
        word: String,
    },
    /// A provider-specific reason that only its protocol, the `source`, knows. Other protocols treat the
    /// answer as complete.
    Other {
        /// The protocol the word belongs to.
        source: Protocol,
        /// The reason as the provider wrote it.
        word: String,
    },
}

/// Token counts, as far as the provider reports them. `input` includes cached tokens, `output` includes
/// reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt, including those read from or written to a cache. `None`: not reported.
    pub input: Option<u64>,
    /// Tokens that the model generated, including reasoning. `None`: not reported.
    pub output: Option<u64>,
    /// Input tokens read from a cache.
    pub cached: Option<u64>,
    /// Input tokens written to a cache.
    pub cache_write: Option<u64>,
    /// Output tokens spent on reasoning. `None`: not reported.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// These counts, and the earlier ones that they omit.
    #[must_use]
    pub fn or(self, before: Self) -> Self {
        Self {
            input: self.input.or(before.input),
            output: self.output.or(before.output),
            cached: self.cached.or(before.cached),
            cache_write: self.cache_write.or(before.cache_write),
            reasoning: self.reasoning.or(before.reasoning),
        }
    }
}

/// A piece of a stream. Pieces of one part are consecutive; a part ends where another begins or the choice
/// ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// The first delta, except for the usage of a prompt that is already counted.
    Started {
        /// The provider's id for the answer, if it gives one.
        id: Option<String>,
        /// The model that answers, under the provider's name, if reported.
        model: Option<String>,
        /// Unix time in seconds, if reported.
        created: Option<u64>,
        /// The tier that serves the request, as chat and responses name it. `None`: it isn't known yet.
        service_tier: Option<String>,
    },
    /// Text of the answer.
    Text {
        /// Index of the choice it belongs to.
        choice: u32,
        /// The next piece. Empty if only log probabilities arrived.
        text: String,
        /// Log probabilities of the piece in the chat format: an array of tokens. `None`: not reported.
        logprobs: Option<Value>,
    },
    /// Text of a refusal.
    Refusal {
        /// Index of the choice it belongs to.
        choice: u32,
        /// The next piece.
        text: String,
    },
    /// Text of a thought. `thought`: its index among the choice's thoughts, which ties its pieces and its
    /// proof together. `id`: only with its first piece. `part`: which of its texts.
    Thought {
        /// Index of the choice it belongs to.
        choice: u32,
        /// Index among the choice's thoughts.
        thought: u32,
        /// The provider's id for the thought, if it has one.
        id: Option<String>,
        /// Index among the thought's texts.
        part: u32,
        /// The next piece of that text.
        text: String,
        /// Whether the text is a summary.
        summary: bool,
    },
    /// The opaque end of a thought: its proof, or all of a hidden one. `id`: repeated even if an earlier
    /// piece had it.
    ThoughtSigned {
        /// Index of the choice it belongs to.
        choice: u32,
        /// Index among the choice's thoughts.
        thought: u32,
        /// The provider's id for the thought, if it has one.
        id: Option<String>,
        /// The proof, or the opaque content.
        signature: String,
        /// Whether the thought is hidden and this is all of it.
        redacted: bool,
    },
    /// A call begins. `call`: its index among the choice's calls. A provider's stream may report a call
    /// before its name or id is known (each empty then), and the same call again with them
    /// (`sequence.rs`).
    Call {
        /// Index of the choice it belongs to.
        choice: u32,
        /// Index among the choice's calls.
        call: u32,
        /// The id by which a result refers to the call.
        id: String,
        /// Name of the called tool.
        name: String,
        /// Whether the tool is a custom tool, whose input is text.
        custom: bool,
        /// Opaque proof of the thoughts that led to the call, if there is one.
        signature: Option<String>,
    },
    /// Text of the call's input.
    CallInput {
        /// Index of the choice it belongs to.
        choice: u32,
        /// Index among the choice's calls.
        call: u32,
        /// The next piece: of JSON for a function, of plain text for a custom tool.
        text: String,
    },
    /// The input of a call is complete. Only provider streams emit this: the sequencer removes it.
    CallDone {
        /// Index of the choice it belongs to.
        choice: u32,
        /// Index among the choice's calls.
        call: u32,
    },
    /// A complete image.
    Image {
        /// Index of the choice it belongs to.
        choice: u32,
        /// The image.
        image: Media,
    },
    /// A complete part that only the provider's protocol, the `source`, knows.
    Other {
        /// Index of the choice it belongs to.
        choice: u32,
        /// The protocol that knows the part.
        source: Protocol,
        /// The part as the provider wrote it.
        value: Value,
    },
    /// A citation for text that came before.
    Citation {
        /// Index of the choice it belongs to.
        choice: u32,
        /// The source, and the text it is for.
        citation: Citation,
    },
    /// A field without a neutral form, with its place in the provider's event.
    Extra(Located<Value>),
    /// The usage so far; the last one counts.
    Usage(Usage),
    /// A choice is complete.
    Ended {
        /// Index of the choice.
        choice: u32,
        /// Why it ended.
        end: FinishReason,
    },
    /// The provider failed mid-stream: nothing follows.
    Failed(Failure),
    /// The stream is complete.
    Done,
}

impl Delta {
    /// Memory that a stored copy takes, in bytes.
    pub fn memory(&self) -> usize {
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

    /// Bytes of the text that the model wrote.
    pub fn written(&self) -> usize {
        match self {
            Self::Text { text, .. }
            | Self::Refusal { text, .. }
            | Self::CallInput { text, .. }
            | Self::Thought { text, .. } => text.len(),
            Self::Call { name, signature, .. } => {
                name.len() + signature.as_ref().map_or(0, |signature| hidden(signature.len()))
            }
            Self::ThoughtSigned { signature, .. } => hidden(signature.len()),
            _ => 0,
        }
    }

    /// The choice it belongs to.
    pub fn choice(&self) -> Option<u32> {
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
pub struct Failure {
    /// The kind of failure. It determines the error code that the client gets.
    pub kind: FailureKind,
    /// The provider's message: untrusted text.
    pub message: String,
    /// The provider's error code, if any.
    pub code: Option<String>,
    /// The request field at fault, as the provider names it.
    pub param: Option<String>,
    /// Whatever else the error document contains.
    pub beyond: Option<Box<ProviderExtra>>,
}

/// What a provider's error contains beyond the fields all protocols share: for clients of its protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderExtra {
    /// The protocol of the error document.
    pub protocol: Protocol,
    /// Further fields of the error.
    pub error: Map<String, Value>,
    /// Fields next to the error.
    pub beside: Map<String, Value>,
}

impl ProviderExtra {
    /// Merges it into the gateway's own error document of the same protocol. Existing fields stay, with two
    /// exceptions: the error type is the provider's, and its details come before the gateway's.
    pub fn write(&self, document: &mut Value) {
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
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), code: None, param: None, beyond: None }
    }
}

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The provider rejects the request's content. Also any 4xx without a kind of its own.
    InvalidRequest,
    /// The provider rejects the gateway's key.
    Authentication,
    /// The provider's key may not do this.
    PermissionDenied,
    /// The provider doesn't have the model, or whatever else the request names.
    NotFound,
    /// The request is larger than the provider accepts.
    TooLarge,
    /// Too many requests or tokens in too little time.
    RateLimited,
    /// The account is out of credit or quota.
    QuotaExceeded,
    /// The provider didn't answer in time.
    Timeout,
    /// The provider is temporarily unable to take requests.
    Overloaded,
    /// The provider failed, or the cause is unknown.
    Server,
}
