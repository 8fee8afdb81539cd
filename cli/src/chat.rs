//! `gatewright chat`: asks a model and writes its answer as it arrives.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Read as _, Write as _};

use clap::Args;
use futures_util::StreamExt as _;
use gatewright::types::{ChatCompletionRequest, ChatMessage, ChatMessageContent, ChatMessageRole};

use crate::Target;
use crate::outcome::{Failure, Outcome, say};

/// Longest prompt that is read from standard input.
const MAX_PROMPT_BYTES: u64 = 8 << 20;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Model id; see `gatewright models`
    #[arg(long, short, default_value = default_model())]
    model: String,
    /// Instructions for the model, before the prompt
    #[arg(long, short)]
    system: Option<String>,
    /// What to ask; - reads it from standard input
    prompt: String,
    #[command(flatten)]
    target: Target,
}

/// The first text model of the catalog.
fn default_model() -> &'static str {
    gatewright::catalog::TEXT_MODELS.first().map_or("", |model| model.id)
}

pub(crate) async fn run(arguments: Arguments) -> Outcome {
    let prompt = match arguments.prompt.as_str() {
        "-" => read_prompt()?,
        _ => arguments.prompt,
    };
    let system = arguments.system.map(|text| message(ChatMessageRole::System, text));
    let messages: Vec<ChatMessage> =
        system.into_iter().chain([message(ChatMessageRole::User, prompt)]).collect();
    let request: ChatCompletionRequest = ChatCompletionRequest::builder()
        .model(arguments.model)
        .messages(messages)
        .try_into()
        .map_err(|error| Failure::Usage(format!("{error}")))?;
    let client = arguments.target.client()?;
    let mut chunks = client.chat().completions().stream(&request).await?;
    let mut out = io::stdout();
    let to_terminal = out.is_terminal();
    let mut ended_line = true;
    while let Some(chunk) = chunks.next().await {
        for choice in chunk?.choices.iter().filter(|choice| choice.index == 0) {
            if let Some(text) = choice.delta.content.as_deref().filter(|text| !text.is_empty()) {
                let text = if to_terminal { harmless(text) } else { Cow::Borrowed(text) };
                out.write_all(text.as_bytes())?;
                out.flush()?;
                ended_line = text.ends_with('\n');
            }
            if choice.finish_reason.as_ref().is_some_and(|reason| reason.as_str() == "length") {
                say("the answer was cut at the model's limit of tokens");
            }
        }
    }
    if !ended_line {
        writeln!(out)?;
    }
    Ok(0)
}

fn message(role: ChatMessageRole, text: String) -> ChatMessage {
    ChatMessage {
        role,
        content: Some(ChatMessageContent::String(text)),
        name: None,
        tool_calls: None,
        tool_call_id: None,
        extra: serde_json::Map::new(),
    }
}

fn read_prompt() -> Result<String, Failure> {
    let mut prompt = String::new();
    io::stdin()
        .lock()
        .take(MAX_PROMPT_BYTES)
        .read_to_string(&mut prompt)
        .map_err(|error| Failure::Usage(format!("cannot read the prompt: {error}")))?;
    Ok(prompt)
}

/// What a model says must not steer the terminal it is shown on.
fn harmless(text: &str) -> Cow<'_, str> {
    let steers = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    if text.contains(steers) { Cow::Owned(text.replace(steers, "\u{fffd}")) } else { Cow::Borrowed(text) }
}
