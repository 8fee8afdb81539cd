//! `gatewright video`: submits a video task, or picks up an earlier one, waits for it, saves the video (specification 2.6,
//! 2.7, 3).

mod generated;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use gatewright::types::{
    VideoGenerationRequest, VideoGenerationRequestAspectRatio, VideoGenerationRequestResolution, VideoTask,
};
use gatewright::visible::visible;
use gatewright::{Client, Error, ErrorKind, SaveOptions, check_place};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::exit::{Exit, Failure, print_message};
use crate::json::{self, JsonOption};
use crate::models::{choose, unless_known};
use crate::one_of::one_of;
use crate::places::check_extension;
use crate::target::Target;
use crate::video::generated::wait_flags::WaitFlags;

/// The format that the API promises (2.7).
const FORMAT: &str = "mp4";

#[derive(Debug, Args)]
pub(crate) struct VideoArguments {
    /// Description of the video: subject, action, environment, camera angle, style
    #[arg(required_unless_present = "task")]
    prompt: Option<String>,
    /// Output file, an MP4 video
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Model id [default: the gateway's first video model]
    #[arg(long, short, env = "GATEWRIGHT_VIDEO_MODEL", hide_env_values = true)]
    model: Option<String>,
    /// Duration in seconds
    #[arg(long)]
    duration: Option<i64>,
    /// Resolution of the video
    #[arg(long, value_parser = one_of(VideoGenerationRequestResolution::ALL, VideoGenerationRequestResolution::as_str))]
    resolution: Option<VideoGenerationRequestResolution>,
    /// Aspect ratio of the video
    #[arg(long, value_parser = one_of(VideoGenerationRequestAspectRatio::ALL, VideoGenerationRequestAspectRatio::as_str))]
    aspect_ratio: Option<VideoGenerationRequestAspectRatio>,
    /// Wait for this task, which was submitted earlier, and save its video
    #[arg(long, value_name = "ID", conflicts_with_all = ["prompt", "model", "duration", "resolution", "aspect_ratio"])]
    task: Option<String>,
    #[command(flatten)]
    wait: WaitFlags,
    #[command(flatten)]
    format: JsonOption,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(arguments: VideoArguments) -> Exit {
    check_extension(&arguments.out, FORMAT, "videos are MP4 files")?;
    let client = arguments.target.client()?;
    // Checks that the folder is writable before the request is sent.
    check_place(&arguments.out, &SaveOptions::default()).await?;
    let task = match &arguments.task {
        Some(task) => task.clone(),
        None => submit(&client, &arguments).await?,
    };
    let is_new = arguments.task.is_none();
    let place = arguments.out.as_path();
    let saving = save(&client, &task, is_new, place, &arguments);
    tokio::select! {
        saved = saving => saved,
        Ok(()) = tokio::signal::ctrl_c() => {
            print_message(&format!("the video task continues on the gateway; {}", pick_up(&task, place)));
            Err(Failure::Interrupted)
        }
    }
}

/// How to get the video of a task later.
fn pick_up(task: &str, place: &Path) -> String {
    format!("save its video with: gatewright video --task {task} -o {}", place.display())
}

/// Submits a task, and returns its id.
async fn submit(client: &Client, arguments: &VideoArguments) -> Result<String, Failure> {
    let submitting = async {
        let model = choose(client, arguments.model.clone(), "video").await?;
        let request = VideoGenerationRequest {
            duration: arguments.duration,
            resolution: arguments.resolution,
            aspect_ratio: arguments.aspect_ratio,
            ..VideoGenerationRequest::new(model, arguments.prompt.clone().unwrap_or_default())
        };
        match client.videos().generations().create(&request).await {
            Ok(task) => Ok(task.into_inner().id),
            Err(error) => Err(unless_known(client, &request.model, "video", error).await),
        }
    };
    tokio::select! {
        submitted = submitting => submitted,
        Ok(()) = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    }
}

/// Waits for a task, and saves its video. is_new: whether this program submitted it.
async fn save(client: &Client, task: &str, is_new: bool, place: &Path, arguments: &VideoArguments) -> Exit {
    let line = progress_line(task);
    let waited = wait_for(client, task, is_new, &arguments.wait, &line).await;
    line.finish_and_clear();
    let done = waited.map_err(|error| {
        let is_late = error.kind() == ErrorKind::Timeout;
        match Failure::from(error) {
            Failure::Failed(message) if is_late => {
                Failure::Failed(format!("{message}; {}", pick_up(task, place)))
            }
            failure => failure,
        }
    })?;
    client.save_video(&done, place, SaveOptions::default()).await?;
    let mut out = io::stdout().lock();
    if arguments.format.json {
        // As the gateway sent it: it may have more members than our types know.
        let done = serde_json::from_slice::<Value>(&done).unwrap_or_default();
        json::write(&mut out, &json!({ "file": place.display().to_string(), "task": done }))?;
    } else {
        writeln!(out, "{}", place.display())?;
    }
    Ok(0)
}

/// The JSON of the completed task.
async fn wait_for(
    client: &Client,
    task: &str,
    is_new: bool,
    wait: &WaitFlags,
    line: &ProgressBar,
) -> Result<Vec<u8>, Error> {
    let watch = client.watch_video(task, &wait.options());
    let mut watch = if is_new { watch.submitted() } else { watch };
    let mut latest = Vec::new();
    while let Some(found) = watch.next().await? {
        latest = found.body.to_vec();
        // Only shown: an answer that is no task is an error of the watch.
        if let Ok(task) = serde_json::from_slice::<VideoTask>(&latest) {
            let (id, status) = (visible(&task.id), visible(task.status.as_str()));
            line.set_message(format!("video task {id} is {status}"));
        }
    }
    Ok(latest)
}

/// A progress line on a terminal: the status of the task and the elapsed time.
fn progress_line(task: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg}: {elapsed}").expect("the template is sound");
    let line =
        ProgressBar::no_length().with_style(style).with_message(format!("video task {}", visible(task)));
    line.enable_steady_tick(Duration::from_secs(1));
    line
}
