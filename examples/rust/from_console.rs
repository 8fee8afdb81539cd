//! A request as the console's playground writes it: `console/test` compares the code below these lines.

#![expect(clippy::print_stdout, reason = "an example prints")]

// cargo add gatewright futures-util serde_json tokio -F tokio/macros,tokio/rt-multi-thread
use futures_util::TryStreamExt;
use gatewright::Client;
use gatewright::types::ChatCompletionRequest;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env()?;
    let request: ChatCompletionRequest = serde_json::from_value(json!({
        "model": "model-sol",
        "messages": [
            {
                "role": "user",
                "content": "Tell me about rivers."
            }
        ],
        "stream_options": {
            "include_usage": true
        }
    }))?;
    let mut text = client.chat().completions().stream(&request).await?.text();
    while let Some(piece) = text.try_next().await? {
        print!("{piece}");
    }
    println!();
    Ok(())
}
