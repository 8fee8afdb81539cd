//! The converse protocol as a codec.

use serde_json::Value;
use serde_json::value::RawValue;

use super::{answer, failure, request_out, stream_in, usage};
use crate::codec::{CallIdRule, Codec, CustomToolSupport, JsonObjectRule, ProviderRules, ToolNameRule};
use crate::conversation::{Answer, Conversation, Failure, Usage};
use crate::{Defaults, EncodedRequest, MalformedDocument, StreamIn};

const RULES: ProviderRules = ProviderRules {
    // Servers accept more characters, but the models behind them don't.
    call_ids: CallIdRule::Plain(64),
    tool_names: ToolNameRule { max: 64, further: b"", begins_with_letter: false },
    custom_tools: CustomToolSupport::Never,
    json_objects: JsonObjectRule::Instruction,
    bounds_cache_marks: true,
    shares_files: false,
};

/// See the module.
pub(crate) struct ConverseCodec;

impl Codec for ConverseCodec {
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
        failure::failure_in(status, body)
    }
}
