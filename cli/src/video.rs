//! `gatewright video`: submits a video task, waits for it, saves the video (specification 2.6, 2.7, 3).

mod generated;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use gatewright::types::{
    VideoGenerationRequest, VideoGenerationRequestAspectRatio, VideoGenerationRequestResolution,
};
use gatewright::visible::visible;
use gatewright::{SaveOptions, check_place};
use indicatif::{ProgressBar, ProgressStyle};

use crate::exit::Exit;
use crate::models::unless_known;
use crate::one_of::one_of;
use crate::places::check_extension;
use crate::target::Target;
use crate::video::generated::wait_flags::WaitFlags;

/// The format that the API promises (2.7).
const FORMAT: &str = "mp4";

#[derive(Debug, Args)]
pub(crate) struct VideoArguments {
    /// Description of the video: subject, action, environment, camera angle, style
    prompt: String,
    /// Output file, an MP4 video
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Model id
    #[arg(long, short, default_value = default_model())]
    model: String,
    /// Duration in seconds
    #[arg(long)]
    duration: Option<i64>,
    /// Resolution of the video
    #[arg(long, value_parser = one_of(VideoGenerationRequestResolution::ALL, VideoGenerationRequestResolution::as_str))]
    resolution: Option<VideoGenerationRequestResolution>,
    /// Aspect ratio of the video
    #[arg(long, value_parser = one_of(VideoGenerationRequestAspectRatio::ALL, VideoGenerationRequestAspectRatio::as_str))]
    aspect_ratio: Option<VideoGenerationRequestAspectRatio>,
    #[command(flatten)]
    wait: WaitFlags,
    #[command(flatten)]
    target: Target,
}

/// The first video model of the catalog.
fn default_model() -> &'static str {
    gatewright::catalog::VIDEO_MODELS.first().map_or("", |model| model.id)
}

pub(crate) async fn run(arguments: VideoArguments) -> Exit {
    check_extension(&arguments.out, FORMAT, "videos are MP4 files")?;
    let client = arguments.target.client()?;
    // Checks that the folder is writable before the request is sent.
    check_place(&arguments.out, &SaveOptions::default()).await?;
    let request = VideoGenerationRequest {
        duration: arguments.duration,
        resolution: arguments.resolution,
        aspect_ratio: arguments.aspect_ratio,
        ..VideoGenerationRequest::new(arguments.model, arguments.prompt)
    };
    // The status of the latest poll, for the progress line.
    let line = progress_line();
    let options = arguments.wait.options().on_progress({
        let line = line.clone();
        move |task| {
            line.set_message(format!(
                "video task {} is {}",
                visible(&task.id),
                visible(task.status.as_str())
            ));
        }
    });
    let videos = client.videos();
    let generations = videos.generations();
    let task = generations.create_and_wait(&request, options).await;
    line.finish_and_clear();
    let task = match task {
        Ok(task) => task,
        Err(error) => return Err(unless_known(&client, &request.model, error).await),
    };
    generations.save(&task, &arguments.out, SaveOptions::default()).await?;
    writeln!(io::stdout().lock(), "{}", arguments.out.display())?;
    Ok(0)
}

/// A progress line on a terminal: the status of the task and the elapsed time.
fn progress_line() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg}: {elapsed}").expect("the template is sound");
    let line = ProgressBar::no_length().with_style(style).with_message("submitting the task");
    line.enable_steady_tick(Duration::from_secs(1));
    line
}
