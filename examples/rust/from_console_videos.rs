//! A request as the console's playground writes it: `console/test` compares the code below these lines.

#![expect(clippy::print_stdout, reason = "an example prints")]

// cargo add gatewright serde_json tokio -F tokio/macros,tokio/rt-multi-thread
use gatewright::types::VideoGenerationRequest;
use gatewright::{Client, SaveOptions, WaitOptions};
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
    let videos = client.videos();
    let task = videos.generations().create_and_wait(&request, WaitOptions::default()).await?;
    let saved = videos.generations().save(&task, "video.mp4", SaveOptions::default()).await?;
    println!("video.mp4: {} bytes", saved.bytes);
    Ok(())
}
