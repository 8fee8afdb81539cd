//! Submits a video, waits for it, and saves it. Usage: video [FILE]

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::time::Duration;

use gatewright::types::{VideoGenerationRequest, VideoGenerationRequestResolution};
use gatewright::{Client, SaveOptions, WaitOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "video.mp4".to_owned());
    let client = Client::from_env()?;

    let request = VideoGenerationRequest::new("video_model_4", "waves on a beach")
        .with_duration(3)
        .with_resolution(VideoGenerationRequestResolution::X720p);
    let options = WaitOptions {
        interval: Duration::from_millis(500),
        timeout: Duration::from_mins(2),
        ..WaitOptions::default()
    };
    let options = options.on_progress(|task| println!("{} is {}", task.id, task.status.as_str()));
    let videos = client.videos();
    let task = videos.generations().create_and_wait(&request, options).await?;
    let saved = videos.generations().save(&task, &file, SaveOptions::default()).await?;
    println!("{file}: {} bytes", saved.bytes);
    Ok(())
}
