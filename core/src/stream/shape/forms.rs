//! The forms themselves, member by member as the specification has them (2.3, 2.4, 2.5).

use super::Presence::{Nullable, Optional, Required, Stated};
use super::{Form, Member, Presence};
use crate::operation::Protocol;

/// The form of what an operation of this protocol streams.
pub(in crate::stream) fn chunk_form(protocol: Protocol) -> &'static Form {
    match protocol {
        Protocol::Chat => &CHAT_CHUNK,
        Protocol::Responses => &RESPONSE_EVENT,
        Protocol::Native => &NATIVE_CHUNK,
        Protocol::Media | Protocol::Models => &Form::Any,
    }
}

/// The form of the answer that a stream of this protocol amounts to.
pub(in crate::stream) fn whole_form(protocol: Protocol) -> &'static Form {
    match protocol {
        Protocol::Chat => &CHAT_COMPLETION,
        Protocol::Responses => &RESPONSE,
        Protocol::Native | Protocol::Media | Protocol::Models => chunk_form(protocol),
    }
}

const fn member(name: &'static str, presence: Presence, form: Form) -> Member {
    Member { name, form, presence }
}

const TEXT: Form = Form::Text("");
const ANY_OBJECT: Form = Form::Object(&[]);

static CHAT_CHUNK: Form = Form::Object(&[
    member("id", Required, TEXT),
    member("object", Required, Form::Text("chat.completion.chunk")),
    member("choices", Required, Form::List(&CHAT_CHOICE)),
    member("created", Nullable, Form::Integer),
    member("model", Nullable, TEXT),
    member("usage", Nullable, CHAT_USAGE),
    member("system_fingerprint", Nullable, TEXT),
    member("service_tier", Nullable, TEXT),
]);

static CHAT_CHOICE: Form = Form::Object(&[
    member("index", Required, Form::Position),
    member("delta", Required, CHAT_DELTA),
    member("finish_reason", Stated, TEXT),
    member("logprobs", Nullable, CHAT_LOGPROBS),
]);

const CHAT_LOGPROBS: Form = Form::Object(&[
    member("content", Nullable, Form::List(&TOKEN_LOGPROB)),
    member("refusal", Nullable, Form::List(&TOKEN_LOGPROB)),
]);

static TOKEN_LOGPROB: Form = Form::Object(&[
    member("token", Required, TEXT),
    member("logprob", Stated, Form::Number),
    member("bytes", Nullable, Form::List(&Form::Integer)),
    member("top_logprobs", Optional, Form::List(&TOP_LOGPROB)),
]);

static TOP_LOGPROB: Form = Form::Object(&[
    member("token", Required, TEXT),
    member("logprob", Stated, Form::Number),
    member("bytes", Nullable, Form::List(&Form::Integer)),
]);

const CHAT_DELTA: Form = Form::Object(&[
    member("content", Nullable, TEXT),
    member("role", Nullable, TEXT),
    member("refusal", Nullable, TEXT),
    member("reasoning_content", Nullable, TEXT),
    member("tool_calls", Optional, Form::List(&CHAT_CALL)),
]);

static CHAT_CALL: Form = Form::Object(&[
    member("index", Nullable, Form::Position),
    member("id", Nullable, TEXT),
    member("type", Nullable, TEXT),
    member("function", Nullable, CHAT_FUNCTION),
    member("custom", Nullable, CHAT_CUSTOM),
]);

const CHAT_FUNCTION: Form =
    Form::Object(&[member("name", Nullable, TEXT), member("arguments", Nullable, TEXT)]);

const CHAT_CUSTOM: Form = Form::Object(&[member("name", Nullable, TEXT), member("input", Nullable, TEXT)]);

const CHAT_USAGE: Form = Form::Object(&[
    member("prompt_tokens", Required, Form::Integer),
    member("completion_tokens", Required, Form::Integer),
    member("total_tokens", Required, Form::Integer),
    member(
        "prompt_tokens_details",
        Nullable,
        Form::Object(&[member("cached_tokens", Nullable, Form::Integer)]),
    ),
    member(
        "completion_tokens_details",
        Nullable,
        Form::Object(&[member("reasoning_tokens", Nullable, Form::Integer)]),
    ),
]);

/// A whole completion (2.2).
static CHAT_COMPLETION: Form = Form::Object(&[
    member("id", Required, TEXT),
    member("object", Required, Form::Text("chat.completion")),
    member("created", Required, Form::Integer),
    member("model", Required, TEXT),
    member("choices", Required, Form::List(&CHAT_ANSWER)),
    member("usage", Required, CHAT_USAGE),
    member("system_fingerprint", Nullable, TEXT),
    member("service_tier", Nullable, TEXT),
]);

static CHAT_ANSWER: Form = Form::Object(&[
    member("index", Required, Form::Position),
    member("message", Required, CHAT_MESSAGE),
    member("finish_reason", Required, TEXT),
    member("logprobs", Nullable, CHAT_LOGPROBS),
]);

const CHAT_MESSAGE: Form = Form::Object(&[
    member("role", Required, Form::Text("assistant")),
    member("content", Stated, TEXT),
    member("refusal", Nullable, TEXT),
    member("reasoning_content", Nullable, TEXT),
    member("tool_calls", Optional, Form::List(&CHAT_WHOLE_CALL)),
]);

static CHAT_WHOLE_CALL: Form = Form::Object(&[
    member("id", Required, TEXT),
    member("type", Required, Form::Text("function")),
    // Which of them is there, the type says.
    member(
        "function",
        Optional,
        Form::Object(&[member("name", Required, TEXT), member("arguments", Required, TEXT)]),
    ),
    member(
        "custom",
        Optional,
        Form::Object(&[member("name", Required, TEXT), member("input", Required, TEXT)]),
    ),
]);

static RESPONSE_EVENT: Form = Form::Object(&[
    member("type", Required, TEXT),
    member("sequence_number", Nullable, Form::Integer),
    member("response", Nullable, RESPONSE),
    member("output_index", Nullable, Form::Integer),
    member("item", Nullable, OUTPUT_ITEM),
    member("item_id", Nullable, TEXT),
    member("content_index", Nullable, Form::Integer),
    member("part", Nullable, OUTPUT_CONTENT),
    member("delta", Nullable, TEXT),
    member("text", Nullable, TEXT),
    member("logprobs", Nullable, Form::List(&TOKEN_LOGPROB)),
    member("name", Nullable, TEXT),
    member("arguments", Nullable, TEXT),
    member("input", Nullable, TEXT),
    member("code", Nullable, TEXT),
    member("message", Nullable, TEXT),
    member("param", Nullable, TEXT),
]);

/// A whole response (2.4).
pub(in crate::stream) const RESPONSE: Form = Form::Object(&[
    member("id", Required, TEXT),
    member("object", Required, Form::Text("response")),
    member("created_at", Required, Form::Number),
    member("status", Nullable, TEXT),
    member("model", Required, TEXT),
    member("output", Required, Form::List(&OUTPUT_ITEM)),
    member("error", Stated, Form::Object(&[member("code", Stated, TEXT), member("message", Required, TEXT)])),
    member("incomplete_details", Stated, Form::Object(&[member("reason", Nullable, TEXT)])),
    member("instructions", Stated, Form::Any),
    member("metadata", Stated, Form::Map(&TEXT)),
    member("parallel_tool_calls", Required, Form::Flag),
    member("temperature", Stated, Form::Number),
    member("top_p", Stated, Form::Number),
    member("tool_choice", Required, Form::Any),
    member("tools", Required, Form::List(&RESPONSE_TOOL)),
    member("max_output_tokens", Nullable, Form::Integer),
    member("previous_response_id", Nullable, TEXT),
    member("store", Nullable, Form::Flag),
    member("truncation", Nullable, TEXT),
    member("text", Nullable, RESPONSE_TEXT),
    member(
        "reasoning",
        Nullable,
        Form::Object(&[member("effort", Nullable, TEXT), member("summary", Nullable, TEXT)]),
    ),
    member("usage", Nullable, RESPONSE_USAGE),
    member("background", Nullable, Form::Flag),
    member("max_tool_calls", Nullable, Form::Integer),
    member("prompt_cache_key", Nullable, TEXT),
    member("safety_identifier", Nullable, TEXT),
    member("service_tier", Nullable, TEXT),
    member("top_logprobs", Nullable, Form::Integer),
    member("user", Nullable, TEXT),
]);

static RESPONSE_TOOL: Form = Form::Object(&[
    member("type", Required, TEXT),
    member("name", Nullable, TEXT),
    member("description", Nullable, TEXT),
    member("parameters", Nullable, ANY_OBJECT),
    member("strict", Nullable, Form::Flag),
]);

const RESPONSE_TEXT: Form = Form::Object(&[member("verbosity", Nullable, TEXT)]);

const RESPONSE_USAGE: Form = Form::Object(&[
    member("input_tokens", Required, Form::Integer),
    member("input_tokens_details", Nullable, ANY_OBJECT),
    member("output_tokens", Required, Form::Integer),
    member("output_tokens_details", Nullable, ANY_OBJECT),
    member("total_tokens", Required, Form::Integer),
]);

static OUTPUT_ITEM: Form = Form::Object(&[
    member("type", Required, TEXT),
    member("id", Nullable, TEXT),
    member("role", Nullable, TEXT),
    member("content", Optional, Form::List(&OUTPUT_CONTENT)),
    member("status", Nullable, TEXT),
    member("call_id", Nullable, TEXT),
    member("name", Nullable, TEXT),
    member("arguments", Nullable, TEXT),
    member("summary", Optional, Form::List(&ANY_OBJECT)),
    member("encrypted_content", Nullable, TEXT),
    member("input", Nullable, TEXT),
]);

static OUTPUT_CONTENT: Form = Form::Object(&[
    member("type", Required, TEXT),
    member("text", Nullable, TEXT),
    member("annotations", Optional, Form::List(&ANY_OBJECT)),
    member("refusal", Nullable, TEXT),
    member("logprobs", Nullable, Form::List(&TOKEN_LOGPROB)),
]);

static NATIVE_CHUNK: Form = Form::Object(&[
    member("candidates", Optional, Form::List(&NATIVE_CANDIDATE)),
    member("promptFeedback", Optional, ANY_OBJECT),
    member("usageMetadata", Nullable, NATIVE_USAGE),
    member("modelVersion", Nullable, TEXT),
    member("responseId", Nullable, TEXT),
]);

static NATIVE_CANDIDATE: Form = Form::Object(&[
    member("index", Nullable, Form::Position),
    member("content", Nullable, NATIVE_CONTENT),
    member("finishReason", Nullable, TEXT),
]);

const NATIVE_CONTENT: Form =
    Form::Object(&[member("parts", Required, Form::List(&NATIVE_PART)), member("role", Nullable, TEXT)]);

static NATIVE_PART: Form = Form::Object(&[
    member("text", Nullable, TEXT),
    member("thought", Nullable, Form::Flag),
    member("thoughtSignature", Nullable, TEXT),
    member(
        "inlineData",
        Nullable,
        Form::Object(&[member("mimeType", Required, TEXT), member("data", Required, TEXT)]),
    ),
    member(
        "functionCall",
        Nullable,
        Form::Object(&[
            member("id", Nullable, TEXT),
            member("name", Required, TEXT),
            member("args", Optional, ANY_OBJECT),
        ]),
    ),
    member(
        "functionResponse",
        Nullable,
        Form::Object(&[
            member("id", Nullable, TEXT),
            member("name", Required, TEXT),
            member("response", Required, ANY_OBJECT),
        ]),
    ),
]);

const NATIVE_USAGE: Form = Form::Object(&[
    member("promptTokenCount", Nullable, Form::Integer),
    member("candidatesTokenCount", Nullable, Form::Integer),
    member("totalTokenCount", Nullable, Form::Integer),
    member("cachedContentTokenCount", Nullable, Form::Integer),
    member("thoughtsTokenCount", Nullable, Form::Integer),
]);
