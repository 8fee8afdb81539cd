//! The chat protocol as a codec.

use serde_json::Value;
use serde_json::value::RawValue;

use super::{answer, foreign_blocks, inspect, request_in, request_out, stream_in, stream_out, usage};
use crate::codec::{
    CallIdRule, ClientCodec, Codec, CustomToolSupport, JsonObjectRule, ProviderRules, ToolNameRule,
};
use crate::conversation::{Answer, Conversation, Failure, Protocol, Usage};
use crate::inspect::{AnswerMembers, EventAction, StreamInspector};
use crate::{Defaults, EncodedRequest, MalformedDocument, ResponseContext, StreamIn, StreamOut, failure};

const RULES: ProviderRules = ProviderRules {
    call_ids: CallIdRule::Chars(40),
    tool_names: ToolNameRule { max: 64, further: b"", begins_with_letter: false },
    custom_tools: CustomToolSupport::ByUpstream,
    json_objects: JsonObjectRule::Word,
    bounds_cache_marks: false,
    shares_files: true,
};

/// See the module.
pub(crate) struct ChatCodec;

impl Codec for ChatCodec {
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

    fn usage_in(&self, usage: &RawValue, _before: Usage) -> Option<Usage> {
        usage::read(usage)
    }

    fn failure_in(&self, status: u16, body: &[u8]) -> Failure {
        failure::of_document(Protocol::Chat, status, body)
    }
}

impl ClientCodec for ChatCodec {
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
        AnswerMembers { model: "model", usage: "usage", content: "choices" }
    }

    fn has_own_kinds(&self, conversation: &Conversation) -> bool {
        foreign_blocks::has_foreign_blocks(conversation)
    }

    fn replace_own_kinds(&self, conversation: &mut Conversation) {
        foreign_blocks::replace_foreign_blocks(conversation);
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
