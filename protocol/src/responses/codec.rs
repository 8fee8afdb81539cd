//! The responses protocol as a codec.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use super::{
    answer, answer_in, deviations, error, grammar, inspect, judge, own_kinds, request_in, request_out,
    stream_in, stream_out, usage,
};
use crate::codec::{
    AnswerRules, CallIdRule, CitationRule, ClientCodec, Codec, CustomToolSupport, JsonObjectRule, MediaRule,
    ProviderRules, ToolNameRule,
};
use crate::conversation::{Answer, Conversation, Failure, JsonPointer, Protocol, Usage};
use crate::grammar::{Transcript, TranscriptEvent};
use crate::http_binding::{Action, HttpBinding};
use crate::inspect::{AnswerMembers, EventAction, StreamInspector};
use crate::judge::Rule;
use crate::{
    Defaults, EncodedRequest, MalformedDocument, RequestMembers, ResponseContext, StreamError, StreamIn,
    StreamOut, failure,
};

const BINDING: HttpBinding = HttpBinding {
    id_prefix: "resp_",
    stores_responses: true,
    request: RequestMembers {
        max_tokens: &["max_output_tokens"],
        choices: &[],
        formats: &[&["text", "format", "type"]],
        ..RequestMembers::USUAL
    },
    ..HttpBinding::USUAL
};

const RULES: ProviderRules = ProviderRules {
    call_ids: CallIdRule::Chars(64),
    tool_names: ToolNameRule { max: 128, further: b"", begins_with_letter: false },
    custom_tools: CustomToolSupport::Always,
    json_objects: JsonObjectRule::WordInInput,
    json_beside_tools: |_| true,
    bounds_cache_marks: false,
    shares_files: true,
    stop_sequences: false,
    audio: true,
    media_of_model: false,
    unlabelled_summaries: false,
    service_tier_at: "/service_tier",
    cache_write_at: "/usage/input_tokens_details/cache_write_tokens",
};

const ANSWER_RULES: AnswerRules = AnswerRules {
    names_stop_sequence: false,
    has_pauses: true,
    has_usage_details: true,
    shows_only_summaries: true,
    finish_words: &["completed", "incomplete", "failed", "cancelled", "max_output_tokens", "content_filter"],
    citations: CitationRule::OfText,
    media: MediaRule::InlineImages,
};

/// See the module.
pub(crate) struct ResponsesCodec;

impl Codec for ResponsesCodec {
    fn name(&self) -> &'static str {
        "responses"
    }

    fn binding(&self) -> &'static HttpBinding {
        &BINDING
    }

    fn rules(&self) -> &'static ProviderRules {
        &RULES
    }

    fn path(&self, action: Action, _model: &str) -> Cow<'static, str> {
        match action {
            Action::Compact => "/responses/compact".into(),
            _ => "/responses".into(),
        }
    }

    fn request_out(&self, conversation: &Conversation, defaults: Defaults) -> EncodedRequest {
        request_out::request_out(conversation, defaults)
    }

    fn answer_in(&self, body: Value) -> Result<Answer, MalformedDocument> {
        answer_in::answer_in(body)
    }

    fn stream_in(&self) -> Box<dyn StreamIn> {
        Box::<stream_in::ResponsesStreamReader>::default()
    }

    fn usage_in(&self, usage: &RawValue, _before: Usage) -> Option<Usage> {
        usage::read(usage)
    }

    fn failure_in(&self, status: u16, body: &[u8]) -> Failure {
        failure::of_document(Protocol::Responses, status, body)
    }

    fn failure_within(&self, answer: &Value) -> Option<Failure> {
        (answer["status"] == "failed").then(|| failure::of_value(&answer["error"]))
    }

    fn end_place(&self, _choice: &str, _is_sequence: bool) -> JsonPointer {
        "/incomplete_details/reason".into()
    }

    fn stream_end_place(&self, _choice: u32, _is_sequence: bool) -> JsonPointer {
        "/response/incomplete_details/reason".into()
    }

    fn judge_rules(&self) -> &'static [Rule] {
        judge::RULES
    }
}

impl ClientCodec for ResponsesCodec {
    fn answer_rules(&self) -> &'static AnswerRules {
        &ANSWER_RULES
    }

    fn request_in(&self, body: Value, model: &str, stream: bool) -> Result<Conversation, MalformedDocument> {
        request_in::request_in(body, model, stream)
    }

    fn answer_out(&self, answer: Answer, context: &ResponseContext) -> Value {
        answer::answer_out(answer, context)
    }

    fn stream_out(&self, context: ResponseContext) -> Box<dyn StreamOut> {
        Box::new(stream_out::ResponsesStreamWriter::new(context))
    }

    fn answer_members(&self) -> AnswerMembers {
        AnswerMembers { model: "model", usage: "usage", content: "output" }
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

    fn error_event(&self, error: &StreamError<'_>, inspector: &StreamInspector, now: u64) -> String {
        error::event(error, inspector, now)
    }

    fn server_error_event(&self, message: &str, number: usize) -> String {
        error::server_event(message, number)
    }

    fn deviate(&self, answer: &mut Value) {
        deviations::answer(answer);
    }

    fn deviate_event(&self, document: &mut Value) -> bool {
        deviations::event(document)
    }

    fn stream_rules(&self) -> &'static [&'static str] {
        grammar::RULES
    }

    fn read_stream(&self, events: &[TranscriptEvent], transcript: &mut Transcript) {
        grammar::read(events, transcript);
    }
}
