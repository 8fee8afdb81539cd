//! `gatewright chat`: sends a prompt to a model and prints the answer as it arrives.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Read as _, Write as _};

use clap::Args;
use futures_util::StreamExt as _;
use gatewright::types::{ChatCompletionRequest, ChatMessage};
use gatewright::visible::visible_lines;

use crate::exit::{Exit, Failure, say};
use crate::target::Target;

/// Maximum size of a prompt from standard input, in bytes.
const MAX_PROMPT_BYTES: u64 = 8 << 20;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Model id; see `gatewright models`
    #[arg(long, short, default_value = default_model())]
    model: String,
    /// System instructions for the model
    #[arg(long, short)]
    system: Option<String>,
    /// The prompt; - reads it from standard input
    prompt: String,
    #[command(flatten)]
    target: Target,
}

/// The first text model of the catalog.
fn default_model() -> &'static str {
    gatewright::catalog::TEXT_MODELS.first().map_or("", |model| model.id)
}

pub(crate) async fn run(arguments: Arguments) -> Exit {
    let prompt = match arguments.prompt.as_str() {
        "-" => read_prompt()?,
        _ => arguments.prompt,
    };
    let system = arguments.system.map(ChatMessage::system);
    let messages = system.into_iter().chain([ChatMessage::user(prompt)]).collect();
    let request = ChatCompletionRequest::new(arguments.model, messages);
    let client = arguments.target.client()?;
    let mut chunks = client.chat().completions().stream(&request).await?;
    let mut out = io::stdout();
    let to_terminal = out.is_terminal();
    let mut ended_line = true;
    while let Some(chunk) = chunks.next().await {
        for choice in chunk?.choices.iter().filter(|choice| choice.index == 0) {
            if let Some(text) = choice.delta.content.as_deref().filter(|text| !text.is_empty()) {
                let text = if to_terminal { visible_lines(text) } else { Cow::Borrowed(text) };
                out.write_all(text.as_bytes())?;
                out.flush()?;
                ended_line = text.ends_with('\n');
            }
            if choice.finish_reason.as_ref().is_some_and(|reason| reason.as_str() == "length") {
                say("the answer was cut off at the model's token limit");
            }
        }
    }
    if !ended_line {
        writeln!(out)?;
    }
    Ok(0)
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
