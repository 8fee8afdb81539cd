//! Reads the texts of an answer as values of a type, or reports why there are none.

use std::borrow::Cow;
use std::fmt;

use schemars_1::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Parsed;
use super::schema::name_of;
use crate::api::operation::Operation;
use crate::api::operations::{CREATE_CHAT_COMPLETION, CREATE_MESSAGE, CREATE_RESPONSE, GENERATE_CONTENT};
use crate::api::types::{
    self, ChatChoice, ChatChoiceFinishReason, ChatCompletion, GenerateContentResponse, Message,
    MessageStopReason, OutputContent, ResponseStatus,
};
use crate::transport::response::Response;
use crate::wire::error::{Error, ErrorKind};

/// Maximum length of the part of an unreadable text that its error shows, in characters.
const MAX_SHOWN_CHARS: usize = 200;

/// An answer whose texts can be read as values.
pub(super) trait StructuredAnswer: Serialize {
    /// The operation that it answers.
    const OPERATION: Operation;
    /// The method that reads it.
    const METHOD: &'static str;

    /// The text of each choice.
    fn texts(&self) -> Vec<AnswerText<'_>>;
}

/// The text of one choice, and what the answer says about it.
pub(super) struct AnswerText<'a> {
    /// None if the choice calls tools instead.
    text: Option<Cow<'a, str>>,
    refusal: Option<Cow<'a, str>>,
    /// Why the text is not whole.
    cut: Option<CutOff>,
}

/// Why a text is incomplete: a code for programs, and a sentence with the remedy.
struct CutOff {
    code: &'static str,
    message: String,
}

const LENGTH: &str = "length";
const CONTENT_FILTER: &str = "content_filter";
const INCOMPLETE: &str = "incomplete";
const FAILED: &str = "failed";

impl CutOff {
    fn at_limit(member: &str) -> Self {
        Self {
            code: LENGTH,
            message: format!("it was cut off at its limit of tokens (reason: length): raise {member}"),
        }
    }

    fn by_filter() -> Self {
        let message = "the provider's content filter cut it off (reason: content_filter): change the prompt or the model";
        Self { code: CONTENT_FILTER, message: message.to_owned() }
    }
}

impl StructuredAnswer for ChatCompletion {
    const OPERATION: Operation = CREATE_CHAT_COMPLETION;
    const METHOD: &'static str = "chat.completions.parse";

    fn texts(&self) -> Vec<AnswerText<'_>> {
        self.choices.iter().map(text_of_choice).collect()
    }
}

fn text_of_choice(choice: &ChatChoice) -> AnswerText<'_> {
    let message = &choice.message;
    let cut = match choice.finish_reason.as_str() {
        ChatChoiceFinishReason::LENGTH => Some(CutOff::at_limit("max_tokens or max_completion_tokens")),
        ChatChoiceFinishReason::CONTENT_FILTER => Some(CutOff::by_filter()),
        _ => None,
    };
    // Beside calls of tools, a text is no answer yet.
    let calls_tools = !message.tool_calls.is_empty() || message.function_call.is_some();
    let text = (!calls_tools).then(|| message.content.as_deref().unwrap_or_default().into());
    // Some servers send an empty one beside a text.
    let refusal = message.refusal.as_deref().filter(|refusal| !refusal.is_empty()).map(Into::into);
    AnswerText { text, refusal, cut }
}

impl StructuredAnswer for types::Response {
    const OPERATION: Operation = CREATE_RESPONSE;
    const METHOD: &'static str = "responses.parse";

    fn texts(&self) -> Vec<AnswerText<'_>> {
        let message = self.output.iter().rev().find(|item| item.type_ == "message");
        let parts = message.map_or(&[][..], |message| &message.content);
        let joined = |kind: &str, member: fn(&OutputContent) -> Option<&String>| {
            let mut parts = parts.iter().filter(|part| part.type_ == kind).peekable();
            parts.peek()?;
            Some(Cow::from(parts.filter_map(member).map(String::as_str).collect::<String>()))
        };
        // Beside calls of tools, a text is no answer yet.
        let calls_tools = self.output.iter().any(|item| TOOL_CALLS.contains(&item.type_.as_str()));
        let text = joined("output_text", |part| part.text.as_ref()).filter(|_| !calls_tools);
        let refusal = joined("refusal", |part| part.refusal.as_ref()).filter(|refusal| !refusal.is_empty());
        vec![AnswerText { text, refusal, cut: cut_of_response(self) }]
    }
}

/// The kinds of output that call tools.
const TOOL_CALLS: [&str; 2] = ["function_call", "custom_tool_call"];

fn cut_of_response(response: &types::Response) -> Option<CutOff> {
    let reason = response.incomplete_details.as_ref().and_then(|details| details.reason.as_ref());
    match response.status.as_ref()?.as_str() {
        ResponseStatus::INCOMPLETE => Some(match reason.map(|reason| reason.as_str()) {
            Some("max_output_tokens") => CutOff::at_limit("max_output_tokens"),
            Some(CONTENT_FILTER) => CutOff::by_filter(),
            _ => CutOff {
                code: INCOMPLETE,
                message: "it is incomplete; the service does not say why".to_owned(),
            },
        }),
        ResponseStatus::FAILED => {
            let message =
                response.error.as_ref().map_or("the service does not say why", |error| &error.message);
            Some(CutOff { code: FAILED, message: format!("it failed: {message}") })
        }
        _ => None,
    }
}

impl StructuredAnswer for Message {
    const OPERATION: Operation = CREATE_MESSAGE;
    const METHOD: &'static str = "messages.parse";

    fn texts(&self) -> Vec<AnswerText<'_>> {
        let reason = self.stop_reason.as_ref().map(|reason| reason.as_str());
        let cut = match reason {
            Some(MessageStopReason::MAX_TOKENS | CONTEXT_WINDOW) => Some(CutOff::at_limit("max_tokens")),
            _ => None,
        };
        // Beside calls of tools, a text is no answer yet, and the text of a refusal never is.
        let calls_tools = self.content.iter().any(|block| block.type_ == "tool_use");
        let has_none = calls_tools || reason == Some(MessageStopReason::REFUSAL);
        let blocks = self.content.iter().filter(|block| block.type_ == "text");
        let text: String = blocks.filter_map(|block| block.text.as_deref()).collect();
        vec![AnswerText { text: (!has_none).then(|| text.into()), refusal: None, cut }]
    }
}

/// Why a message ends where the model can read no more; the protocol's types do not list it.
pub(crate) const CONTEXT_WINDOW: &str = "model_context_window_exceeded";

impl StructuredAnswer for GenerateContentResponse {
    const OPERATION: Operation = GENERATE_CONTENT;
    const METHOD: &'static str = "native.parse";

    /// That of the first candidate.
    fn texts(&self) -> Vec<AnswerText<'_>> {
        let candidate = self.candidates.first();
        let is_blocked = candidate.is_none() && self.prompt_feedback.get("blockReason").is_some();
        let reason = candidate.and_then(|candidate| candidate.finish_reason.as_ref());
        let cut = match reason.map(|reason| reason.as_str()) {
            Some("MAX_TOKENS") => Some(CutOff::at_limit("maxOutputTokens")),
            Some(reason) if FILTERS.contains(&reason) => Some(CutOff::by_filter()),
            _ => is_blocked.then(CutOff::by_filter),
        };
        let parts = candidate.and_then(|candidate| candidate.content.as_ref());
        let parts = parts.map_or(&[][..], |content| &content.parts);
        // Beside calls of functions, a text is no answer yet.
        let calls_functions = parts.iter().any(|part| part.function_call.is_some());
        let visible = parts.iter().filter(|part| part.thought != Some(true));
        let text: String = visible.filter_map(|part| part.text.as_deref()).collect();
        vec![AnswerText { text: (!calls_functions).then(|| text.into()), refusal: None, cut }]
    }
}

/// Why a provider's filter ends a native answer.
pub(crate) const FILTERS: [&str; 5] = ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"];

impl AnswerText<'_> {
    /// The value; none after a refusal, or if the choice calls tools. Errors: StructuredOutput, with the place in the
    /// value and the start of the text.
    fn value<T: JsonSchema + DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        let text = self.text.as_deref();
        let is_no =
            || Error::new(ErrorKind::StructuredOutput, format!("the answer is no {}", name_of::<T>()));
        if let Some(CutOff { code, message }) = &self.cut {
            let begins = beginning(text.unwrap_or_default());
            return Err(is_no().with_code(code).quoting(format_args!("{message}; {begins}")));
        }
        match text {
            Some(text) if self.refusal.is_none() => fit(text).map(Some).map_err(|misfit| {
                let message = format!("{misfit}; {}", beginning(text));
                is_no().with_code(misfit.code).quoting(message).about(misfit.path)
            }),
            _ => Ok(None),
        }
    }
}

/// How a text begins, in words.
fn beginning(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        _ if text.is_empty() => "its text is empty".to_owned(),
        Some((end, _)) => format!("its text begins: {}…", &text[..end]),
        None => format!("its text begins: {text}"),
    }
}

const INVALID_JSON: &str = "invalid_json";
const MISMATCH: &str = "mismatch";

/// Why a text is not a value of a type.
#[derive(Debug)]
pub(crate) struct Misfit {
    code: &'static str,
    /// Where: `$.rivers[2].length`.
    path: String,
    reason: serde_json::Error,
}

/// Reads a text as a value of a type.
pub(crate) fn fit<T: DeserializeOwned>(text: &str) -> Result<T, Misfit> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let (path, reason) = match serde_path_to_error::deserialize(&mut reader) {
        Ok(value) => match reader.end() {
            Ok(()) => return Ok(value),
            Err(rest) => (String::new(), rest),
        },
        Err(error) => (error.path().to_string(), error.into_inner()),
    };
    if !reason.is_data() {
        return Err(Misfit { code: INVALID_JSON, path: "$".to_owned(), reason });
    }
    // The library calls the root a dot.
    let path = match path.as_str() {
        "." => "$".to_owned(),
        index if index.starts_with('[') => format!("${index}"),
        member => format!("$.{member}"),
    };
    Err(Misfit { code: MISMATCH, path, reason })
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, path, reason } = self;
        let what = if *code == INVALID_JSON { "invalid JSON: " } else { "" };
        write!(f, "{path}: {what}{reason}")
    }
}

/// Reads every choice. Errors: StructuredOutput, with the whole answer.
pub(super) fn read<A, T>(answer: Response<A>) -> Result<Parsed<A, T>, Error>
where
    A: StructuredAnswer,
    T: JsonSchema + DeserializeOwned,
{
    let texts = answer.texts();
    let refusal = texts.first().and_then(|text| text.refusal.as_deref()).map(str::to_owned);
    match texts.iter().map(AnswerText::value).collect() {
        Ok(values) => Ok(Parsed { answer, values, refusal }),
        Err(error) => {
            let error = error.with_answer(serde_json::to_vec(&*answer).ok().map(Into::into));
            Err(answer.describe(error, &A::OPERATION).with_method(A::METHOD))
        }
    }
}
