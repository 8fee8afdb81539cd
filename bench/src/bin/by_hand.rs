//! The floor for Rust clients: reqwest and serde, with no more than the response needs.

use anyhow::{Context as _, Result, anyhow, bail};
use gatewright_bench::measured::{Task, sum};
use memchr::memmem;
use reqwest::Client;
use reqwest::header::AUTHORIZATION;
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: [Message<'a>; 1],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
    usage: Usage,
}

#[derive(Deserialize)]
struct Choice {
    message: Text,
}

#[derive(Deserialize)]
struct Text {
    content: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    total_tokens: u64,
}

#[derive(Deserialize)]
struct Chunk {
    choices: Vec<ChunkChoice>,
}

#[derive(Deserialize)]
struct ChunkChoice {
    delta: Text,
}

fn main() -> Result<()> {
    let task = Task::from_arguments()?;
    // reqwest is built without a crypto provider, and requires one although the stub speaks plain HTTP.
    let provider = rustls::crypto::ring::default_provider().install_default();
    provider.map_err(|_| anyhow!("there is a provider already"))?;
    task.block_on(work(&task))
}

async fn work(task: &Task) -> Result<()> {
    let client = Client::builder().no_proxy().build()?;
    let url = format!("{}/chat/completions", task.base_url());
    let send = async |stream| {
        let messages = [Message { role: "user", content: "Tell me about rivers." }];
        let request = Request { model: &task.model, messages, stream };
        let response = client.post(&url).header(AUTHORIZATION, "Bearer none").json(&request).send().await?;
        anyhow::Ok(response.error_for_status()?)
    };
    match &*task.work {
        "ask" => {
            task.measure(async || {
                let body = send(false).await?.bytes().await?;
                let completion: Completion = serde_json::from_slice(&body)?;
                let choice = completion.choices.first().context("no choice")?;
                Ok(sum(choice.message.content.as_deref()) + completion.usage.total_tokens)
            })
            .await
        }
        "read" => {
            task.measure(async || {
                let mut response = send(true).await?;
                let mut received = Vec::new();
                let mut read = 0;
                while let Some(packet) = response.chunk().await? {
                    received.extend_from_slice(&packet);
                    let mut done = 0;
                    while let Some(end) = memmem::find(&received[done..], b"\n\n") {
                        read += sum_of_event(&received[done..done + end])?;
                        done += end + 2;
                    }
                    received.drain(..done);
                }
                Ok(read)
            })
            .await
        }
        other => bail!("no such work: {other}"),
    }
}

fn sum_of_event(event: &[u8]) -> Result<u64> {
    let data = event.strip_prefix(b"data: ").context("an event without data")?;
    if data == b"[DONE]" {
        return Ok(0);
    }
    let chunk: Chunk = serde_json::from_slice(data)?;
    Ok(chunk.choices.first().map_or(0, |choice| sum(choice.delta.content.as_deref())))
}
