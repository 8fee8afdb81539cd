//! Streams a chat completion.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::io::Write as _;

use gatewright::Client;
use gatewright::types::{ChatCompletionRequest, ChatMessage};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env()?;
    let request = ChatCompletionRequest::new("model-terra", vec![ChatMessage::user("Tell me about rivers.")]);

    let mut chunks = client.chat().completions().stream(&request).await?;
    while let Some(chunk) = chunks.try_next().await? {
        print!("{}", chunk.text().unwrap_or_default());
        std::io::stdout().flush()?;
    }
    println!();
    Ok(())
}
