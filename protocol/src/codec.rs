//! What a protocol is to this crate and to the gateway. Each protocol implements it in the file `codec.rs` of its folder.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::conversation::{Answer, Conversation, Failure, Usage};
use crate::inspect::{AnswerMembers, EventAction, StreamInspector};
use crate::{Defaults, EncodedRequest, MalformedDocument, ResponseContext, StreamIn, StreamOut};

/// A protocol that upstreams speak.
pub(crate) trait Codec: Sync {
    /// What providers of this protocol accept.
    fn rules(&self) -> &'static ProviderRules;

    /// Writes a provider's request, for a conversation that [`Protocol::request_out`] has arranged.
    ///
    /// [`Protocol::request_out`]: crate::conversation::Protocol::request_out
    fn request_out(&self, conversation: &Conversation, defaults: Defaults) -> EncodedRequest;

    /// Reads a provider's answer.
    fn answer_in(&self, body: Value) -> Result<Answer, MalformedDocument>;

    /// Reads a provider's stream.
    fn stream_in(&self) -> Box<dyn StreamIn>;

    /// Reads a usage object. `before`: what the answer reported earlier, because one event may count cached tokens separately
    /// and the next may omit them (messages). None: it isn't an object, or counts nothing (chat).
    fn usage_in(&self, usage: &RawValue, before: Usage) -> Option<Usage>;

    /// Reads a provider's error. `body`: as received; it may be anything.
    fn failure_in(&self, status: u16, body: &[u8]) -> Failure;

    /// The error carried inside an answer document.
    fn failure_within(&self, _answer: &Value) -> Option<Failure> {
        None
    }
}

/// A protocol that clients speak, too.
pub(crate) trait ClientCodec: Codec {
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
    fn has_own_kinds(&self, conversation: &Conversation) -> bool;

    /// Replaces them with kinds that every protocol can express.
    fn replace_own_kinds(&self, conversation: &mut Conversation);

    /// Inspects an event that is passed through. `name`: its `event` line. Errors: its data aren't an object.
    fn inspect(
        &self,
        inspector: &mut StreamInspector,
        name: Option<&str>,
        data: &str,
    ) -> serde_json::Result<EventAction>;
}

/// What providers of a protocol accept.
#[derive(Debug)]
pub(crate) struct ProviderRules {
    pub(crate) call_ids: CallIdRule,
    pub(crate) tool_names: ToolNameRule,
    pub(crate) custom_tools: CustomToolSupport,
    pub(crate) json_objects: JsonObjectRule,
    /// Whether a request has a maximum number of cache marks.
    pub(crate) bounds_cache_marks: bool,
    /// Whether files that one provider of chat or responses keeps are known here.
    pub(crate) shares_files: bool,
}

/// Which ids of tool calls are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallIdRule {
    /// Every text; calls without an id are matched by order.
    Any,
    /// Texts of one to this number of characters.
    Chars(usize),
    /// Texts of one to this number of ASCII letters, digits, `_` and `-`.
    Plain(usize),
}

/// Which names of tools are accepted: ASCII letters, digits, `_`, `-` and further bytes.
#[derive(Debug)]
pub(crate) struct ToolNameRule {
    /// Maximum length in bytes.
    pub(crate) max: usize,
    pub(crate) further: &'static [u8],
    /// Whether it begins with a letter or `_`.
    pub(crate) begins_with_letter: bool,
}

/// Whether tools that take text are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CustomToolSupport {
    Always,
    /// Unless the upstream lacks them.
    ByUpstream,
    Never,
}

/// What a request for a JSON object needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonObjectRule {
    /// Nothing else: the format is a part of the request.
    Format,
    /// The word in a text of the prompt.
    Word,
    /// The word in the input: instructions don't count.
    WordInInput,
    /// An instruction: the protocol has no such format.
    Instruction,
}
