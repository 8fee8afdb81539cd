//! A request as the console's playground writes it: `console/test` compares what is below these lines.

#![expect(clippy::print_stdout, reason = "an example prints")]

use gatewright::Client;
use gatewright::types::VideoGenerationRequest;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::from_env()?;
    let request: VideoGenerationRequest = serde_json::from_value(json!({
        "model": "video_model_4",
        "prompt": "waves on a beach",
        "duration": 3,
        "resolution": "720p"
    }))?;
    let answer = client.videos().generations().create(&request).await?;
    println!("{answer:#?}");
    Ok(())
}
