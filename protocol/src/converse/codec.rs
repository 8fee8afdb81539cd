//! The converse protocol as a codec.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use super::{answer, failure, judge, request_out, stream_in, usage};
use crate::codec::{CallIdRule, Codec, CustomToolSupport, JsonObjectRule, ProviderRules, ToolNameRule};
use crate::conversation::{Answer, Conversation, Failure, JsonPointer, Usage};
use crate::http_binding::{Action, HttpBinding, StreamForm};
use crate::judge::Rule;
use crate::{Defaults, EncodedRequest, MalformedDocument, StreamIn, frames};

const BINDING: HttpBinding = HttpBinding {
    model_in_path: true,
    stream: StreamForm { media_type: "application/vnd.amazon.eventstream", ..StreamForm::USUAL },
    ..HttpBinding::USUAL
};

const RULES: ProviderRules = ProviderRules {
    // Servers accept more characters, but the models behind them don't.
    call_ids: CallIdRule::Plain(64),
    tool_names: ToolNameRule { max: 64, further: b"", begins_with_letter: false },
    custom_tools: CustomToolSupport::Never,
    json_objects: JsonObjectRule::Instruction,
    json_beside_tools: |_| true,
    bounds_cache_marks: true,
    shares_files: false,
    stop_sequences: true,
    audio: false,
    media_of_model: false,
    unlabelled_summaries: true,
    service_tier_at: "/serviceTier/type",
    cache_write_at: "/usage/cacheWriteInputTokens",
};

/// See the module.
pub(crate) struct ConverseCodec;

impl Codec for ConverseCodec {
    fn name(&self) -> &'static str {
        "converse"
    }

    fn binding(&self) -> &'static HttpBinding {
        &BINDING
    }

    fn rules(&self) -> &'static ProviderRules {
        &RULES
    }

    fn path(&self, action: Action, model: &str) -> Cow<'static, str> {
        let streams = action == Action::Answer { stream: true };
        let method = if streams { "converse-stream" } else { "converse" };
        format!("/model/{model}/{method}").into()
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

    fn end_place(&self, _choice: &str, is_sequence: bool) -> JsonPointer {
        if is_sequence { "/additionalModelResponseFields/stop_sequence" } else { "/stopReason" }.into()
    }

    fn stream_end_place(&self, _choice: u32, _is_sequence: bool) -> JsonPointer {
        "/stopReason".into()
    }

    fn streamed(&self, document: Value) -> Result<Vec<u8>, Value> {
        // The stream's reader accepts whole answers, too.
        let mut bytes = Vec::new();
        frames::data(&document, &mut bytes);
        Ok(bytes)
    }

    fn judge_rules(&self) -> &'static [Rule] {
        judge::RULES
    }
}
