//! The protocol as a codec.

use std::borrow::Cow;

use gatewright_protocol::codec::{
    AnswerRules, CallIdRule, CitationRule, ClientCodec, Codec, CustomToolSupport, JsonObjectRule, MediaRule,
    ProviderRules, ToolNameRule,
};
use gatewright_protocol::conversation::{Answer, Conversation, Failure, FailureKind, JsonPointer, Usage};
use gatewright_protocol::grammar::{Transcript, TranscriptEvent};
use gatewright_protocol::inspect::{AnswerMembers, EventAction, StreamInspector};
use gatewright_protocol::judge::Rule;
use gatewright_protocol::{
    Action, Defaults, EncodedRequest, HttpBinding, MalformedDocument, RequestMembers, ResponseContext,
    StreamError, StreamIn, StreamOut,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{answer, grammar, inspect, judge, request_in, request_out, stream_in, stream_out, usage};

const BINDING: HttpBinding = HttpBinding {
    id_prefix: "lines_",
    request: RequestMembers { max_tokens: &["longest"], ..RequestMembers::USUAL },
    ..HttpBinding::USUAL
};

const RULES: ProviderRules = ProviderRules {
    call_ids: CallIdRule::Any,
    tool_names: ToolNameRule { max: 64, further: b"", begins_with_letter: false },
    custom_tools: CustomToolSupport::Never,
    json_objects: JsonObjectRule::Instruction,
    json_beside_tools: |_| true,
    bounds_cache_marks: false,
    shares_files: false,
    stop_sequences: false,
    audio: false,
    media_of_model: false,
    unlabelled_summaries: false,
    service_tier_at: "/tier",
    cache_write_at: "/tokens/2",
};

const ANSWER_RULES: AnswerRules = AnswerRules {
    names_stop_sequence: false,
    has_pauses: false,
    has_usage_details: false,
    shows_only_summaries: false,
    finish_words: &["done", "cut"],
    citations: CitationRule::Any,
    media: MediaRule::None,
};

/// See the module.
pub(super) struct LinesCodec;

impl Codec for LinesCodec {
    fn name(&self) -> &'static str {
        "lines"
    }

    fn binding(&self) -> &'static HttpBinding {
        &BINDING
    }

    fn rules(&self) -> &'static ProviderRules {
        &RULES
    }

    fn path(&self, _action: Action, _model: &str) -> Cow<'static, str> {
        "/lines".into()
    }

    fn request_out(&self, conversation: &Conversation, defaults: Defaults) -> EncodedRequest {
        request_out::request_out(conversation, defaults)
    }

    fn answer_in(&self, body: Value) -> Result<Answer, MalformedDocument> {
        answer::answer_in(&body)
    }

    fn stream_in(&self) -> Box<dyn StreamIn> {
        Box::<stream_in::LinesReader>::default()
    }

    fn usage_in(&self, usage: &RawValue, _before: Usage) -> Option<Usage> {
        usage::read(&serde_json::from_str(usage.get()).ok()?)
    }

    fn failure_in(&self, status: u16, body: &[u8]) -> Failure {
        let document: Value = serde_json::from_slice(body).unwrap_or_default();
        let kind = if status < 500 { FailureKind::InvalidRequest } else { FailureKind::Server };
        Failure::new(kind, document["wrong"].as_str().unwrap_or("no reason"))
    }

    fn end_place(&self, _choice: &str, _is_sequence: bool) -> JsonPointer {
        "/why".into()
    }

    fn stream_end_place(&self, _choice: u32, _is_sequence: bool) -> JsonPointer {
        "/why".into()
    }

    fn judge_rules(&self) -> &'static [Rule] {
        judge::RULES
    }
}

impl ClientCodec for LinesCodec {
    fn answer_rules(&self) -> &'static AnswerRules {
        &ANSWER_RULES
    }

    fn request_in(&self, body: Value, model: &str, stream: bool) -> Result<Conversation, MalformedDocument> {
        request_in::request_in(&body, model, stream)
    }

    fn answer_out(&self, answer: Answer, context: &ResponseContext) -> Value {
        answer::answer_out(&answer, context)
    }

    fn stream_out(&self, context: ResponseContext) -> Box<dyn StreamOut> {
        Box::new(stream_out::LinesWriter::new(context))
    }

    fn answer_members(&self) -> AnswerMembers {
        AnswerMembers { model: "model", usage: "tokens", content: "said" }
    }

    fn inspect(
        &self,
        inspector: &mut StreamInspector,
        _name: Option<&str>,
        data: &str,
    ) -> serde_json::Result<EventAction> {
        inspect::event(inspector, data)
    }

    fn error_event(&self, error: &StreamError<'_>, _inspector: &StreamInspector, _now: u64) -> String {
        format!("data: {}\n\n", json!({ "wrong": error.message }))
    }

    fn stream_rules(&self) -> &'static [&'static str] {
        grammar::RULES
    }

    fn read_stream(&self, events: &[TranscriptEvent], transcript: &mut Transcript) {
        grammar::read(events, transcript);
    }
}
