//! `gatewright chat`: talks to a model, and prints its answers as they arrive.

mod answer;
mod commands;
mod conversation;
mod editor;

use std::io::{self, IsTerminal as _, Read as _};

use clap::Args;
use gatewright::types::{ChatCompletionRequest, ChatMessage};

use self::conversation::Conversation;
use crate::exit::{Exit, Failure};
use crate::signals::interruptible;
use crate::target::Target;

/// Maximum size of a prompt from standard input, and of a conversation, in bytes.
const MAX_PROMPT_BYTES: u64 = 8 << 20;

#[derive(Debug, Args)]
pub(crate) struct ChatArguments {
    /// Model id; see `gatewright models`
    #[arg(long, short, default_value = default_model())]
    model: String,
    /// System instructions for the model
    #[arg(long, short)]
    system: Option<String>,
    /// Do not save typed lines to the history
    #[arg(long)]
    no_history: bool,
    /// Prompt; - reads it from standard input [default: a conversation on a terminal, else standard input]
    prompt: Option<String>,
    #[command(flatten)]
    target: Target,
}

/// The first text model of the catalog.
pub(crate) fn default_model() -> &'static str {
    gatewright::catalog::TEXT_MODELS.first().map_or("", |model| model.id)
}

pub(crate) async fn run(arguments: ChatArguments) -> Exit {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if arguments.prompt.is_none() && is_terminal {
        let client = arguments.target.client()?;
        let talk = Conversation::new(client, arguments.model, arguments.system);
        return talk.run(!arguments.no_history).await;
    }
    interruptible(once(arguments)).await
}

/// One prompt and its answer.
async fn once(arguments: ChatArguments) -> Exit {
    let prompt = match arguments.prompt {
        Some(prompt) if prompt != "-" => prompt,
        _ => read_prompt()?,
    };
    let system = arguments.system.map(ChatMessage::system);
    let messages = system.into_iter().chain([ChatMessage::user(prompt)]).collect();
    let request = ChatCompletionRequest::new(arguments.model, messages);
    let client = arguments.target.client()?;
    match answer::print(&client, &request, &mut String::new()).await {
        Ok(()) => Ok(0),
        Err(broken) => Err(broken.told(&client, &request.model).await),
    }
}

fn read_prompt() -> Result<String, Failure> {
    let mut prompt = String::new();
    io::stdin()
        .lock()
        .take(MAX_PROMPT_BYTES)
        .read_to_string(&mut prompt)
        .map_err(|error| Failure::Usage(format!("cannot read the prompt: {error}")))?;
    if prompt.trim().is_empty() {
        return Err(Failure::Usage("the prompt is empty: standard input had no text".to_owned()));
    }
    Ok(prompt)
}
