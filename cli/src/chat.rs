//! `gatewright chat`: talks to a model, and prints its answers as they arrive.

mod answer;
mod commands;
mod conversation;
mod cost;
mod editor;
mod protocol;
mod remark;
mod settings;
mod wrap;

use std::io::{self, IsTerminal as _, Read as _};
use std::path::PathBuf;

use clap::Args;
use gatewright::types::{ChatCompletionRequest, ChatMessage};

use self::answer::AnswerText;
use self::conversation::Conversation;
use self::protocol::ChatProtocol;
use self::settings::AnswerSettings;
use crate::amount;
use crate::exit::{Exit, FAILED, Failure};
use crate::models::choose;
use crate::signals::interruptible;
use crate::target::Target;

/// Maximum size of a prompt from standard input, and of a conversation, in bytes.
const MAX_PROMPT_BYTES: u64 = 8 << 20;

#[derive(Debug, Args)]
pub(crate) struct ChatArguments {
    /// Model id; see `gatewright models` [default: the gateway's first text model]
    #[arg(long, short, env = "GATEWRIGHT_MODEL", hide_env_values = true)]
    model: Option<String>,
    /// System instructions for the model
    #[arg(long, short)]
    system: Option<String>,
    /// Protocol of the request
    #[arg(long, value_name = "PROTOCOL", default_value = "chat")]
    protocol: ChatProtocol,
    #[command(flatten)]
    settings: AnswerSettings,
    /// Image file to send with the prompt; repeatable
    #[arg(long = "image", value_name = "FILE")]
    images: Vec<PathBuf>,
    /// Print the whole response as JSON, once it is complete
    #[arg(long)]
    json: bool,
    /// Print the answer once it is complete
    #[arg(long)]
    no_stream: bool,
    /// Do not save typed lines to the history
    #[arg(long)]
    no_history: bool,
    /// Prompt; text on standard input follows it, and - is that text alone [default: a conversation on a terminal, else
    /// standard input]
    prompt: Option<String>,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(arguments: ChatArguments) -> Exit {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if arguments.prompt.is_none() && is_terminal && arguments.images.is_empty() && !arguments.json {
        let client = arguments.target.client()?;
        let model = choose(&client, arguments.model, "text").await?;
        let talk = Conversation::new(client, arguments.protocol, model, arguments.system, arguments.settings);
        return talk.run(!arguments.no_history).await;
    }
    interruptible(once(arguments)).await
}

/// One prompt and its answer.
async fn once(arguments: ChatArguments) -> Exit {
    let prompt = match arguments.prompt {
        Some(prompt) if prompt != "-" => with_input(prompt)?,
        _ => Some(read_input()?)
            .filter(|text| !text.trim().is_empty())
            .ok_or_else(|| Failure::Usage("the prompt is empty: standard input had no text".to_owned()))?,
    };
    let content = settings::content(prompt, &arguments.images)?;
    let client = arguments.target.client()?;
    let model = choose(&client, arguments.model, "text").await?;
    let system = arguments.system.map(ChatMessage::system);
    let messages = system.into_iter().chain([ChatMessage::user(content)]).collect();
    let mut request = ChatCompletionRequest::new(model, messages);
    arguments.settings.apply(&mut request);
    let answered = if arguments.json || arguments.no_stream {
        answer::print_whole(&client, arguments.protocol, &request, arguments.json).await
    } else {
        answer::print(&client, arguments.protocol, &request, &mut String::new()).await
    };
    match answered {
        Ok(AnswerText::Printed) => Ok(0),
        Ok(AnswerText::Missing) => Ok(FAILED),
        Err(broken) => Err(broken.into_failure(&client, &request.model).await),
    }
}

/// A prompt, followed by the text of standard input if that isn't a terminal.
fn with_input(prompt: String) -> Result<String, Failure> {
    if io::stdin().is_terminal() {
        return Ok(prompt);
    }
    let input = read_input()?;
    Ok(if input.trim().is_empty() { prompt } else { format!("{prompt}\n\n{input}") })
}

/// The text of standard input. Errors: it is too long, or not text.
fn read_input() -> Result<String, Failure> {
    let refuse = |why: String| Failure::Usage(format!("cannot read the prompt from standard input: {why}"));
    let mut input = String::new();
    let read = io::stdin().lock().take(MAX_PROMPT_BYTES + 1).read_to_string(&mut input);
    read.map_err(|error| refuse(error.to_string()))?;
    if input.len() as u64 > MAX_PROMPT_BYTES {
        return Err(refuse(format!("it is longer than {}", amount::bytes(MAX_PROMPT_BYTES))));
    }
    Ok(input)
}
