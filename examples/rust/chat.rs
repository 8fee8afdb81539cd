//! A chat completion and its metadata.

#![expect(clippy::print_stdout, reason = "an example prints")]

use gatewright::Client;
use gatewright::types::{ChatCompletionRequest, ChatMessage};

#[tokio::main]
async fn main() -> Result<(), gatewright::Error> {
    let client = Client::from_env()?; // GATEWRIGHT_BASE_URL, GATEWRIGHT_API_KEY

    let request = ChatCompletionRequest::new(
        "model-sol",
        vec![ChatMessage::system("You are brief."), ChatMessage::user("What is a gateway?")],
    )
    .with_max_tokens(60);
    let completion = client.chat().completions().create(&request).await?;
    println!("{}", completion.text().unwrap_or_default());
    let request_id = completion.request_id().unwrap_or("unnamed");
    println!("{} tokens, request {request_id}", completion.usage.total_tokens);
    Ok(())
}
