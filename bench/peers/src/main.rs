//! async-openai, as its users write it.

use anyhow::{Result, bail};
use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::types::chat::{ChatCompletionRequestUserMessage, CreateChatCompletionRequestArgs};
use futures::StreamExt as _;

/// Includes the file itself and not the crate, which depends on our client.
#[path = "../../src/measured.rs"]
#[allow(dead_code, reason = "shared with other programs")]
mod measured;

use measured::{Task, sum};

fn main() -> Result<()> {
    let task = Task::from_arguments()?;
    task.block_on(work(&task))
}

async fn work(task: &Task) -> Result<()> {
    let config = OpenAIConfig::new().with_api_base(task.base_url()).with_api_key("none");
    let client = Client::with_config(config);
    let message = ChatCompletionRequestUserMessage::from("Tell me about rivers.");
    let request =
        CreateChatCompletionRequestArgs::default().model(&task.model).messages([message.into()]).build()?;
    let chat = client.chat();
    match &*task.work {
        "ask" => {
            task.measure(async || {
                let completion = chat.create(request.clone()).await?;
                let tokens = completion.usage.map_or(0, |usage| u64::from(usage.total_tokens));
                Ok(sum(completion.choices[0].message.content.as_deref()) + tokens)
            })
            .await
        }
        "read" => {
            task.measure(async || {
                let mut chunks = chat.create_stream(request.clone()).await?;
                let mut read = 0;
                while let Some(chunk) = chunks.next().await {
                    let chunk = chunk?;
                    read += chunk.choices.first().map_or(0, |choice| sum(choice.delta.content.as_deref()));
                }
                Ok(read)
            })
            .await
        }
        other => bail!("no such work: {other}"),
    }
}
