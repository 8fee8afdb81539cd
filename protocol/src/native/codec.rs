//! The native protocol as a codec.

use std::borrow::Cow;

use gatewright::operations::ErrorStyle;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{
    answer, deviations, embeddings, error, grammar, inspect, judge, own_kinds, request_in, request_out,
    stream_in, stream_out, usage,
};
use crate::codec::{
    AnswerRules, CallIdRule, CitationRule, ClientCodec, Codec, CustomToolSupport, JsonObjectRule, MediaRule,
    ProviderRules, ToolNameRule,
};
use crate::conversation::{Answer, Conversation, Failure, JsonPointer, Protocol, Usage};
use crate::grammar::{Transcript, TranscriptEvent};
use crate::http_binding::{Action, HttpBinding, ModelListQuery, PlainAction, StreamForm};
use crate::inspect::{AnswerMembers, EventAction, StreamInspector};
use crate::judge::Rule;
use crate::{
    Defaults, EmbeddingsCodec, EncodedRequest, MalformedDocument, RequestMembers, ResponseContext,
    StreamError, StreamIn, StreamOut, failure, frames,
};

const BINDING: HttpBinding = HttpBinding {
    version_path: "/v1beta",
    model_in_path: true,
    model_prefix: "models/",
    counted_request: Some("generateContentRequest"),
    key_header: Some("x-goog-api-key"),
    key_parameter: Some("key"),
    model_list: ModelListQuery { size: "?pageSize=1000", cursor: Some("pageToken") },
    serves_embeddings: true,
    error_style: ErrorStyle::Native,
    request: RequestMembers {
        parameters: &["generationConfig", "generation_config"],
        max_tokens: &["maxOutputTokens", "max_output_tokens"],
        choices: &["candidateCount", "candidate_count"],
        top_p: &["topP", "top_p"],
        top_k: &["topK", "top_k"],
        frequency_penalty: &["frequencyPenalty", "frequency_penalty"],
        presence_penalty: &["presencePenalty", "presence_penalty"],
        formats: &[&["responseMimeType"], &["response_mime_type"]],
        ..RequestMembers::USUAL
    },
    stream: StreamForm { may_be_array: true, ..StreamForm::USUAL },
    ..HttpBinding::USUAL
};

const RULES: ProviderRules = ProviderRules {
    call_ids: CallIdRule::Any,
    tool_names: ToolNameRule { max: 64, further: b".:", begins_with_letter: true },
    custom_tools: CustomToolSupport::Never,
    json_objects: JsonObjectRule::Format,
    json_beside_tools,
    bounds_cache_marks: false,
    shares_files: false,
    stop_sequences: true,
    audio: true,
    media_of_model: true,
    unlabelled_summaries: false,
    service_tier_at: "/service_tier",
    cache_write_at: "/usage/prompt_tokens_details/cache_write_tokens",
};

const ANSWER_RULES: AnswerRules = AnswerRules {
    names_stop_sequence: false,
    has_pauses: false,
    has_usage_details: false,
    shows_only_summaries: false,
    finish_words: &[
        "STOP",
        "MAX_TOKENS",
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "OTHER",
    ],
    citations: CitationRule::Any,
    media: MediaRule::Nameless,
};

/// See the module.
pub(crate) struct NativeCodec;

impl Codec for NativeCodec {
    fn name(&self) -> &'static str {
        "native"
    }

    fn binding(&self) -> &'static HttpBinding {
        &BINDING
    }

    fn rules(&self) -> &'static ProviderRules {
        &RULES
    }

    fn path(&self, action: Action, model: &str) -> Cow<'static, str> {
        let method = match action {
            Action::Answer { stream: true } => "streamGenerateContent?alt=sse",
            Action::CountTokens => "countTokens",
            Action::Plain(PlainAction::Embed { list: true }) => "batchEmbedContents",
            Action::Plain(PlainAction::Embed { list: false }) => "embedContent",
            _ => "generateContent",
        };
        format!("/models/{model}:{method}").into()
    }

    fn request_out(&self, conversation: &Conversation, defaults: Defaults) -> EncodedRequest {
        request_out::request_out(conversation, defaults)
    }

    fn answer_in(&self, body: Value) -> Result<Answer, MalformedDocument> {
        answer::answer_in(body)
    }

    fn stream_in(&self) -> Box<dyn StreamIn> {
        Box::<stream_in::NativeStreamReader>::default()
    }

    fn usage_in(&self, usage: &RawValue, _before: Usage) -> Option<Usage> {
        usage::read(usage)
    }

    fn failure_in(&self, status: u16, body: &[u8]) -> Failure {
        failure::of_document(Protocol::Native, status, body)
    }

    fn end_place(&self, choice: &str, _is_sequence: bool) -> JsonPointer {
        format!("{choice}/finishReason").into()
    }

    fn stream_end_place(&self, choice: u32, _is_sequence: bool) -> JsonPointer {
        format!("/candidates/{choice}/finishReason").into()
    }

    fn embeddings(&self) -> Option<EmbeddingsCodec> {
        Some(EmbeddingsCodec { request: embeddings::request, answer: embeddings::answer })
    }

    fn judged<'r>(&self, request: &'r Value) -> Cow<'r, Value> {
        Cow::Owned(judge::respelled(request))
    }

    fn streamed(&self, document: Value) -> Result<Vec<u8>, Value> {
        // Without `alt=sse`, the stream is a list of events.
        let Value::Array(events) = document else { return Err(document) };
        let mut bytes = Vec::new();
        for event in &events {
            frames::data(event, &mut bytes);
        }
        Ok(bytes)
    }

    fn judge_rules(&self) -> &'static [Rule] {
        judge::RULES
    }
}

impl ClientCodec for NativeCodec {
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
        Box::new(stream_out::NativeStreamWriter::new(context))
    }

    fn answer_members(&self) -> AnswerMembers {
        AnswerMembers { model: "modelVersion", usage: "usageMetadata", content: "candidates" }
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
        _name: Option<&str>,
        data: &str,
    ) -> serde_json::Result<EventAction> {
        inspect::event(inspector, data)
    }

    fn error_event(&self, error: &StreamError<'_>, _inspector: &StreamInspector, _now: u64) -> String {
        error::event(error)
    }

    fn server_error_event(&self, message: &str, _number: usize) -> String {
        error::server_event(message)
    }

    fn token_count(&self, tokens: usize) -> Value {
        json!({ "totalTokens": tokens })
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

/// "Function calling with a response mime type: 'application/json' is unsupported", say models before the third generation. Sources:
/// github.com/symfony/ai/issues/1777; github.com/google/adk-python/issues/5735.
fn json_beside_tools(model: &str) -> bool {
    !["gemini-1", "gemini-2"].iter().any(|older| model.contains(older))
}
