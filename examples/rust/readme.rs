//! The README's code.

#![expect(clippy::print_stdout, reason = "an example prints")]

use gatewright::Client;
use gatewright::types::{ChatCompletionRequest, ChatMessage};

#[tokio::main]
async fn main() -> Result<(), gatewright::Error> {
    let client = Client::from_env()?;
    let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("Say hello.")]);
    let completion = client.chat().completions().create(&request).await?;
    println!("{}", completion.text().unwrap_or_default());
    let mut chunks = client.chat().completions().stream(&request).await?;
    while let Some(chunk) = chunks.try_next().await? {
        print!("{}", chunk.text().unwrap_or_default());
    }
    println!();
    Ok(())
}
