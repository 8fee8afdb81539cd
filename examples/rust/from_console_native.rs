//! A request as the console's playground writes it: `console/test` compares the code below these lines.

#![expect(clippy::print_stdout, reason = "an example prints")]

// cargo add gatewright futures-util serde_json tokio -F tokio/macros,tokio/rt-multi-thread
use futures_util::TryStreamExt;
use gatewright::Client;
use gatewright::types::GenerateContentRequest;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env()?;
    let request: GenerateContentRequest = serde_json::from_value(json!({
        "contents": [
            {
                "role": "user",
                "parts": [
                    {
                        "text": "Tell me about rivers."
                    }
                ]
            }
        ]
    }))?;
    let mut text = client.native().stream_generate_content("model-sol", &request).await?.text();
    while let Some(piece) = text.try_next().await? {
        print!("{piece}");
    }
    println!();
    Ok(())
}
