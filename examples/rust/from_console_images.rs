//! A request as the console's playground writes it: `console/test` compares what is below these lines.

#![expect(clippy::print_stdout, reason = "an example prints")]

use gatewright::Client;
use gatewright::types::ImageGenerationRequest;
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
    println!("{answer:#?}");
    Ok(())
}
