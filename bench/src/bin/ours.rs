//! Our client in Rust, as its users write it.

use anyhow::{Result, bail};
use gatewright::Client;
use gatewright::types::{ChatCompletionRequest, ChatMessage};
use gatewright_bench::measured::{Task, sum};

fn main() -> Result<()> {
    let task = Task::from_arguments()?;
    task.block_on(work(&task))
}

async fn work(task: &Task) -> Result<()> {
    let client = Client::builder().base_url(task.base_url()).api_key("none").build()?;
    let request = ChatCompletionRequest::new(&*task.model, vec![ChatMessage::user("Tell me about rivers.")]);
    let chat = client.chat();
    let completions = chat.completions();
    match &*task.work {
        "ask" => {
            task.measure(async || {
                let completion = completions.create(&request).await?;
                Ok(sum(completion.text()) + u64::try_from(completion.usage.total_tokens)?)
            })
            .await
        }
        "read" => {
            task.measure(async || {
                let mut chunks = completions.stream(&request).await?;
                let mut read = 0;
                while let Some(chunk) = chunks.try_next().await? {
                    read += sum(chunk.text());
                }
                Ok(read)
            })
            .await
        }
        other => bail!("no such work: {other}"),
    }
}
