//! The messages protocol as a codec.

use std::borrow::Cow;

use gatewright::operations::ErrorStyle;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{
    answer, deviations, error, grammar, inspect, judge, own_kinds, request_in, request_out, stream_in,
    stream_out, usage,
};
use crate::codec::{
    AnswerRules, CallIdRule, CitationRule, ClientCodec, Codec, CustomToolSupport, JsonObjectRule, MediaRule,
    ProviderRules, ToolNameRule,
};
use crate::conversation::{Answer, Conversation, Failure, JsonPointer, Protocol, Usage};
use crate::grammar::{Transcript, TranscriptEvent};
use crate::http_binding::{Action, HttpBinding, ModelListQuery, StreamForm};
use crate::inspect::{AnswerMembers, EventAction, StreamInspector};
use crate::judge::Rule;
use crate::{
    Defaults, EncodedRequest, MalformedDocument, RequestMembers, ResponseContext, StreamError, StreamIn,
    StreamOut, failure,
};

const BINDING: HttpBinding = HttpBinding {
    key_header: Some("x-api-key"),
    version_header: Some(("anthropic-version", "2023-06-01")),
    beta_header: Some("anthropic-beta"),
    model_list: ModelListQuery { size: "?limit=1000", cursor: Some("after_id") },
    error_style: ErrorStyle::Messages,
    id_prefix: "msg_",
    request: RequestMembers {
        choices: &[],
        formats: &[&["output_config", "format", "type"], &["output_format", "type"]],
        ..RequestMembers::USUAL
    },
    stream: StreamForm { begins_with_usage: true, ..StreamForm::USUAL },
    ..HttpBinding::USUAL
};

const RULES: ProviderRules = ProviderRules {
    call_ids: CallIdRule::Plain(64),
    tool_names: ToolNameRule { max: 128, further: b"", begins_with_letter: false },
    custom_tools: CustomToolSupport::Never,
    json_objects: JsonObjectRule::Instruction,
    json_beside_tools: |_| true,
    bounds_cache_marks: true,
    shares_files: false,
    stop_sequences: true,
    audio: false,
    media_of_model: false,
    unlabelled_summaries: true,
    service_tier_at: "/usage/service_tier",
    cache_write_at: "/usage/cache_creation_input_tokens",
};

const ANSWER_RULES: AnswerRules = AnswerRules {
    names_stop_sequence: true,
    has_pauses: true,
    has_usage_details: true,
    shows_only_summaries: false,
    finish_words: &[
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "tool_use",
        "pause_turn",
        "refusal",
        "model_context_window_exceeded",
    ],
    citations: CitationRule::OfWrittenText,
    media: MediaRule::None,
};

/// See the module.
pub(crate) struct MessagesCodec;

impl Codec for MessagesCodec {
    fn name(&self) -> &'static str {
        "messages"
    }

    fn binding(&self) -> &'static HttpBinding {
        &BINDING
    }

    fn rules(&self) -> &'static ProviderRules {
        &RULES
    }

    fn path(&self, action: Action, _model: &str) -> Cow<'static, str> {
        match action {
            Action::CountTokens => "/messages/count_tokens".into(),
            _ => "/messages".into(),
        }
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

    fn end_place(&self, _choice: &str, is_sequence: bool) -> JsonPointer {
        if is_sequence { "/stop_sequence" } else { "/stop_reason" }.into()
    }

    fn stream_end_place(&self, _choice: u32, is_sequence: bool) -> JsonPointer {
        if is_sequence { "/delta/stop_sequence" } else { "/delta/stop_reason" }.into()
    }

    fn judge_rules(&self) -> &'static [Rule] {
        judge::RULES
    }
}

impl ClientCodec for MessagesCodec {
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

    fn error_event(&self, error: &StreamError<'_>, _inspector: &StreamInspector, _now: u64) -> String {
        error::event(error)
    }

    fn server_error_event(&self, message: &str, _number: usize) -> String {
        error::server_event(message)
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
