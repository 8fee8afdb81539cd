//! What a protocol is to this crate and to the gateway. Each protocol implements it in the file `codec.rs` of its folder. Whatever
//! depends on the protocol asks here, so that adding one touches nothing else.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::conversation::{Answer, Conversation, Failure, JsonPointer, Usage};
use crate::grammar::{Transcript, TranscriptEvent};
use crate::http_binding::{Action, HttpBinding};
use crate::inspect::{AnswerMembers, EventAction, StreamInspector};
use crate::{
    Defaults, EmbeddingsCodec, EncodedRequest, MalformedDocument, ResponseContext, StreamError, StreamIn,
    StreamOut, judge,
};

/// A protocol that upstreams speak.
pub trait Codec: Sync {
    /// Its name, as in the specification's `x-protocol`.
    fn name(&self) -> &'static str;

    /// How it uses HTTP.
    fn binding(&self) -> &'static HttpBinding;

    /// What providers of this protocol accept.
    fn rules(&self) -> &'static ProviderRules;

    /// The path of an action, with the query that it needs. `model`: percent-encoded. Actions that the protocol lacks may get
    /// any path: they aren't sent.
    fn path(&self, action: Action, model: &str) -> Cow<'static, str>;

    /// Writes a provider's request, for a conversation that [`Protocol::request_out`] has arranged.
    ///
    /// [`Protocol::request_out`]: crate::conversation::Protocol::request_out
    fn request_out(&self, conversation: &Conversation, defaults: Defaults) -> EncodedRequest;

    /// Reads a provider's answer.
    fn answer_in(&self, body: Value) -> Result<Answer, MalformedDocument>;

    /// Reads a provider's stream.
    fn stream_in(&self) -> Box<dyn StreamIn>;

    /// The stream that a provider would have sent instead of one document, as server-sent events, if that takes no writer of
    /// streams. `Err`: it does; the document. A protocol that only upstreams speak has no writer.
    fn streamed(&self, document: Value) -> Result<Vec<u8>, Value> {
        Err(document)
    }

    /// Reads a usage object. `before`: what the answer reported earlier, because one event may count cached tokens separately
    /// and the next may omit them (messages). None: it isn't an object, or counts nothing (chat).
    fn usage_in(&self, usage: &RawValue, before: Usage) -> Option<Usage>;

    /// Reads a provider's error. `body`: as received; it may be anything.
    fn failure_in(&self, status: u16, body: &[u8]) -> Failure;

    /// The error carried inside an answer document.
    fn failure_within(&self, _answer: &Value) -> Option<Failure> {
        None
    }

    /// Where a provider's answer says why a choice ended. `choice`: the place of the choice. `is_sequence`: the stop sequence.
    fn end_place(&self, choice: &str, is_sequence: bool) -> JsonPointer;

    /// The same in a stream. `choice`: the index of the choice.
    fn stream_end_place(&self, choice: u32, is_sequence: bool) -> JsonPointer;

    /// How embeddings are requested. `None`: in the form of the client's request.
    fn embeddings(&self) -> Option<EmbeddingsCodec> {
        None
    }

    /// What strict providers reject.
    fn judge_rules(&self) -> &'static [judge::Rule] {
        &[]
    }

    /// The request as the judge reads it: of several spellings of a member, one.
    fn judged<'r>(&self, request: &'r Value) -> Cow<'r, Value> {
        Cow::Borrowed(request)
    }
}

/// A protocol that clients speak, too.
pub trait ClientCodec: Codec {
    /// What an answer of this protocol can express.
    fn answer_rules(&self) -> &'static AnswerRules;

    /// Reads a client's request that has passed schema validation. `model` and `stream`: see
    /// [`Protocol::request_in`](crate::conversation::Protocol::request_in).
    fn request_in(&self, body: Value, model: &str, stream: bool) -> Result<Conversation, MalformedDocument>;

    /// Writes a client's answer.
    fn answer_out(&self, answer: Answer, context: &ResponseContext) -> Value;

    /// Writes a client's stream.
    fn stream_out(&self, context: ResponseContext) -> Box<dyn StreamOut>;

    /// The members of an answer that the gateway reads and passes through.
    fn answer_members(&self) -> AnswerMembers;

    /// Whether a request has kinds that only this protocol has.
    fn has_own_kinds(&self, _conversation: &Conversation) -> bool {
        false
    }

    /// Replaces them with kinds that every protocol can express.
    fn replace_own_kinds(&self, _conversation: &mut Conversation) {}

    /// Inspects an event that is passed through. `name`: its `event` line. Errors: its data aren't an object.
    fn inspect(
        &self,
        inspector: &mut StreamInspector,
        name: Option<&str>,
        data: &str,
    ) -> serde_json::Result<EventAction>;

    /// The event that ends a failed stream, without a marker of success. `inspector`: what was passed through before. `now`: Unix
    /// time in seconds.
    fn error_event(&self, error: &StreamError<'_>, _inspector: &StreamInspector, _now: u64) -> String {
        error.standard_event()
    }

    /// The event with which a server that fails in mid-stream reports it. `number`: that of the event.
    fn server_error_event(&self, message: &str, _number: usize) -> String {
        let error =
            json!({ "message": message, "type": "server_error", "param": null, "code": "server_error" });
        format!("data: {}\n\n", json!({ "error": error }))
    }

    /// The document with the number of tokens of a request.
    fn token_count(&self, tokens: usize) -> Value {
        json!({ "input_tokens": tokens })
    }

    /// Changes an answer as real servers deviate from the protocol, with the same content.
    fn deviate(&self, _answer: &mut Value) {}

    /// The same for the document of an event. Returns whether the event is sent.
    fn deviate_event(&self, _document: &mut Value) -> bool {
        true
    }

    /// The names of the rules that [`read_stream`](Self::read_stream) checks.
    fn stream_rules(&self) -> &'static [&'static str] {
        &[]
    }

    /// Reads a stream as a strict client of the protocol does, and reports what such a client couldn't.
    fn read_stream(&self, _events: &[TranscriptEvent], _transcript: &mut Transcript) {}
}

/// A protocol that another crate implements.
pub struct ExternalCodec {
    /// For upstreams.
    pub codec: &'static dyn Codec,
    /// For clients. `None`: only upstreams speak it.
    pub client: Option<&'static dyn ClientCodec>,
}

/// What an answer can express.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a protocol")]
pub struct AnswerRules {
    /// Whether it names the stop sequence that ended it.
    pub names_stop_sequence: bool,
    /// Whether it can be paused.
    pub has_pauses: bool,
    /// Whether it states the service tier and the tokens written to a cache.
    pub has_usage_details: bool,
    /// Whether clients show no other thoughts than summaries.
    pub shows_only_summaries: bool,
    /// The words for why it ended.
    pub finish_words: &'static [&'static str],
    /// Which citations it has.
    pub citations: CitationRule,
    /// Which media it has.
    pub media: MediaRule,
}

/// Which citations an answer can express.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CitationRule {
    /// All.
    Any,
    /// Those of a text, which may be empty.
    OfText,
    /// Those of a text that isn't empty.
    OfWrittenText,
}

/// Which media an answer can express.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaRule {
    /// None.
    None,
    /// Images with their content.
    InlineImages,
    /// All, by their content or address, but not their names.
    Nameless,
}

/// What providers of a protocol accept, and how their answers say it.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a protocol")]
pub struct ProviderRules {
    /// Which ids of tool calls.
    pub call_ids: CallIdRule,
    /// Which names of tools.
    pub tool_names: ToolNameRule,
    /// Whether tools that take text.
    pub custom_tools: CustomToolSupport,
    /// What a request for a JSON object needs.
    pub json_objects: JsonObjectRule,
    /// Whether a model accepts a format of JSON beside tools. Without it, the prompt asks for the format.
    pub json_beside_tools: fn(model: &str) -> bool,
    /// Whether a request has a maximum number of cache marks.
    pub bounds_cache_marks: bool,
    /// Whether files that one provider of chat or responses keeps are known here.
    pub shares_files: bool,
    /// Whether requests can name stop sequences.
    pub stop_sequences: bool,
    /// Whether requests can have audio.
    pub audio: bool,
    /// Whether the model's own turns can have images, audio and files.
    pub media_of_model: bool,
    /// Whether thoughts are summaries without being labelled as such.
    pub unlabelled_summaries: bool,
    /// Where an answer states the service tier.
    pub service_tier_at: &'static str,
    /// Where it states the tokens written to a cache.
    pub cache_write_at: &'static str,
}

/// Which ids of tool calls are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallIdRule {
    /// Every text; calls without an id are matched by order.
    Any,
    /// Texts of one to this number of characters.
    Chars(usize),
    /// Texts of one to this number of ASCII letters, digits, `_` and `-`.
    Plain(usize),
    /// Texts of exactly this number of ASCII letters and digits.
    Alphanumeric(usize),
}

/// Which names of tools are accepted: ASCII letters, digits, `_`, `-` and further bytes.
#[derive(Debug)]
pub struct ToolNameRule {
    /// Maximum length in bytes.
    pub max: usize,
    /// Bytes that a name may have besides.
    pub further: &'static [u8],
    /// Whether it begins with a letter or `_`.
    pub begins_with_letter: bool,
}

/// Whether tools that take text are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CustomToolSupport {
    /// They are.
    Always,
    /// Unless the upstream lacks them.
    ByUpstream,
    /// They aren't.
    Never,
}

/// What a request for a JSON object needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonObjectRule {
    /// Nothing else: the format is a part of the request.
    Format,
    /// The word in a text of the prompt.
    Word,
    /// The word in the input: instructions don't count.
    WordInInput,
    /// An instruction: the protocol has no such format.
    Instruction,
}
