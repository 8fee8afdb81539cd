//! The chat protocol as a codec.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use super::{
    answer, deviations, foreign_blocks, grammar, inspect, judge, request_in, request_out, stream_in,
    stream_out, usage,
};
use crate::codec::{
    AnswerRules, CallIdRule, CitationRule, ClientCodec, Codec, CustomToolSupport, JsonObjectRule, MediaRule,
    ProviderRules, ToolNameRule,
};
use crate::conversation::{Answer, Conversation, Failure, JsonPointer, Protocol, Usage};
use crate::grammar::{Transcript, TranscriptEvent};
use crate::http_binding::{Action, HttpBinding, StreamForm};
use crate::inspect::{AnswerMembers, DONE, EventAction, StreamInspector};
use crate::judge::Rule;
use crate::{
    Defaults, EncodedRequest, MalformedDocument, RequestMembers, ResponseContext, StreamIn, StreamOut,
    failure,
};

const BINDING: HttpBinding = HttpBinding {
    serves_embeddings: true,
    serves_plain: true,
    serves_media: true,
    id_prefix: "chatcmpl-",
    request: RequestMembers {
        max_tokens: &["max_tokens", "max_completion_tokens"],
        formats: &[&["response_format", "type"]],
        ..RequestMembers::USUAL
    },
    stream: StreamForm {
        last_data: Some(DONE),
        usage_on_request: true,
        finishes_each_choice: true,
        ..StreamForm::USUAL
    },
    ..HttpBinding::USUAL
};

const RULES: ProviderRules = ProviderRules {
    call_ids: CallIdRule::Chars(40),
    tool_names: ToolNameRule { max: 64, further: b"", begins_with_letter: false },
    custom_tools: CustomToolSupport::ByUpstream,
    json_objects: JsonObjectRule::Word,
    json_beside_tools: |_| true,
    bounds_cache_marks: false,
    shares_files: true,
    stop_sequences: true,
    audio: true,
    media_of_model: false,
    unlabelled_summaries: false,
    service_tier_at: "/service_tier",
    cache_write_at: "/usage/prompt_tokens_details/cache_write_tokens",
};

const ANSWER_RULES: AnswerRules = AnswerRules {
    names_stop_sequence: false,
    has_pauses: false,
    has_usage_details: true,
    shows_only_summaries: false,
    finish_words: &["stop", "length", "tool_calls", "function_call", "content_filter"],
    citations: CitationRule::Any,
    media: MediaRule::None,
};

/// See the module.
pub(crate) struct ChatCodec;

impl Codec for ChatCodec {
    fn name(&self) -> &'static str {
        "chat"
    }

    fn binding(&self) -> &'static HttpBinding {
        &BINDING
    }

    fn rules(&self) -> &'static ProviderRules {
        &RULES
    }

    fn path(&self, action: Action, _model: &str) -> Cow<'static, str> {
        match action {
            Action::Plain(plain) => plain.usual_path().into(),
            Action::Image => "/images/generations".into(),
            _ => "/chat/completions".into(),
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

    fn usage_in(&self, usage: &RawValue, _before: Usage) -> Option<Usage> {
        usage::read(usage)
    }

    fn failure_in(&self, status: u16, body: &[u8]) -> Failure {
        failure::of_document(Protocol::Chat, status, body)
    }

    fn end_place(&self, choice: &str, _is_sequence: bool) -> JsonPointer {
        format!("{choice}/finish_reason").into()
    }

    fn stream_end_place(&self, choice: u32, _is_sequence: bool) -> JsonPointer {
        format!("/choices/{choice}/finish_reason").into()
    }

    fn judge_rules(&self) -> &'static [Rule] {
        judge::RULES
    }
}

impl ClientCodec for ChatCodec {
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
