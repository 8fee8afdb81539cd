//! The messages protocol as a codec.

use serde_json::Value;
use serde_json::value::RawValue;

use super::{answer, inspect, own_kinds, request_in, request_out, stream_in, stream_out, usage};
use crate::codec::{
    CallIdRule, ClientCodec, Codec, CustomToolSupport, JsonObjectRule, ProviderRules, ToolNameRule,
};
use crate::conversation::{Answer, Conversation, Failure, Protocol, Usage};
use crate::inspect::{AnswerMembers, EventAction, StreamInspector};
use crate::{Defaults, EncodedRequest, MalformedDocument, ResponseContext, StreamIn, StreamOut, failure};

const RULES: ProviderRules = ProviderRules {
    call_ids: CallIdRule::Plain(64),
    tool_names: ToolNameRule { max: 128, further: b"", begins_with_letter: false },
    custom_tools: CustomToolSupport::Never,
    json_objects: JsonObjectRule::Instruction,
    bounds_cache_marks: true,
    shares_files: false,
};

/// See the module.
pub(crate) struct MessagesCodec;

impl Codec for MessagesCodec {
    fn rules(&self) -> &'static ProviderRules {
        &RULES
    }

    fn request_out(&self, conversation: &Conversation, defaults: Defaults) -> EncodedRequest {
        request_out::request_out(conversation, defaults)
    }

    fn answer_in(&self, body: Value) -> Result<Answer, MalformedDocument> {
        answer::answer_in(body)
    }

    fn stream_in(&self) -> Box<dyn StreamIn> {
        stream_in::stream_in()
    }

    fn usage_in(&self, usage: &RawValue, before: Usage) -> Option<Usage> {
        usage::read(usage, before)
    }

    fn failure_in(&self, status: u16, body: &[u8]) -> Failure {
        failure::of_document(Protocol::Messages, status, body)
    }
}

impl ClientCodec for MessagesCodec {
    fn request_in(&self, body: Value, model: &str, stream: bool) -> Result<Conversation, MalformedDocument> {
        request_in::request_in(body, model, stream)
    }

    fn answer_out(&self, answer: Answer, context: &ResponseContext) -> Value {
        answer::answer_out(answer, context)
    }

    fn stream_out(&self, context: ResponseContext) -> Box<dyn StreamOut> {
        stream_out::stream_out(context)
    }

    fn answer_members(&self) -> AnswerMembers {
        AnswerMembers { model: "model", usage: "usage", content: "content" }
    }

    fn has_own_kinds(&self, conversation: &Conversation) -> bool {
        own_kinds::has_own_kinds(conversation)
    }

    fn replace_own_kinds(&self, conversation: &mut Conversation) {
        own_kinds::replace_own_kinds(conversation);
    }

    fn inspect(
        &self,
        inspector: &mut StreamInspector,
        name: Option<&str>,
        data: &str,
    ) -> serde_json::Result<EventAction> {
        inspect::event(inspector, name, data)
    }
}
