//! A video: submitted, waited for, saved. Usage: video [FILE]

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::io::Write as _;
use std::time::Duration;

use gatewright::types::{VideoGenerationRequest, VideoGenerationRequestResolution};
use gatewright::{Client, WaitOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "video.mp4".to_owned());
    let client = Client::from_env()?;

    let mut request = VideoGenerationRequest::new("video_model_4", "waves on a beach");
    request.duration = Some(3);
    request.resolution = Some(VideoGenerationRequestResolution::X720p);
    let options = WaitOptions { interval: Duration::from_millis(500), timeout: Duration::from_mins(2) };
    let task = client.videos().generations().create_and_wait(&request, options).await?;
    let output = task.output.as_ref().ok_or("a completed task has an output")?;

    let mut download = client.download(&output.url).await?;
    let mut target = std::fs::File::create(&file)?;
    while let Some(bytes) = download.chunk().await? {
        target.write_all(&bytes)?;
    }
    println!("{file}: {} s of {}, {}", output.duration, *output.format, output.resolution);
    Ok(())
}
