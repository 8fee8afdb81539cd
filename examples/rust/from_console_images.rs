//! A request as the console's playground writes it: `console/test` compares the code below these lines.

#![expect(clippy::print_stdout, reason = "an example prints")]

// cargo add gatewright serde_json tokio -F tokio/macros,tokio/rt-multi-thread
use gatewright::types::ImageGenerationRequest;
use gatewright::{Client, SaveOptions};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env()?;
    let request: ImageGenerationRequest = serde_json::from_value(json!({
        "model": "image_model_2",
        "prompt": "a lighthouse at dusk",
        "size": "256x256",
        "response_format": "b64_json"
    }))?;
    let answer = client.images().generate(&request).await?;
    for (index, image) in answer.data.iter().enumerate() {
        let file = format!("image-{}.png", index + 1);
        let saved = client.images().save(image, &file, SaveOptions::default()).await?;
        println!("{file}: {} bytes", saved.bytes);
    }
    Ok(())
}
