//! `gatewright video`: submits a video task, waits for it, saves the video (specification 2.6, 2.7, 3).

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::Args;
use gatewright::types::{
    VideoGenerationRequest, VideoGenerationRequestAspectRatio, VideoGenerationRequestResolution,
};
use gatewright::visible::visible;
use gatewright::{SaveOptions, WaitOptions, check_place};
use tokio::time::{Instant, interval};

use crate::Target;
use crate::outcome::{Failure, Outcome};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What to show: subject, action, environment, camera angle, style
    prompt: String,
    /// Where to save it
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Model id
    #[arg(long, short, default_value = default_model())]
    model: String,
    /// Seconds
    #[arg(long)]
    duration: Option<i64>,
    /// 720p or 1080p
    #[arg(long)]
    resolution: Option<VideoGenerationRequestResolution>,
    /// 16:9, 9:16 or 1:1
    #[arg(long)]
    aspect_ratio: Option<VideoGenerationRequestAspectRatio>,
    /// Seconds between two looks at the task
    #[arg(long, value_name = "SECONDS", default_value = waits().0.as_str(), value_parser = seconds)]
    interval: Duration,
    /// Seconds to wait at most
    #[arg(long, value_name = "SECONDS", default_value = waits().1.as_str(), value_parser = seconds)]
    timeout: Duration,
    #[command(flatten)]
    target: Target,
}

/// The first video model of the catalog.
fn default_model() -> &'static str {
    gatewright::catalog::VIDEO_MODELS.first().map_or("", |model| model.id)
}

/// Interval and deadline of a wait unless told otherwise, in seconds.
fn waits() -> &'static (String, String) {
    static WAITS: LazyLock<(String, String)> = LazyLock::new(|| {
        let WaitOptions { interval, timeout, .. } = WaitOptions::default();
        (interval.as_secs().to_string(), timeout.as_secs().to_string())
    });
    &WAITS
}

/// Reads a number of seconds, such as 0.5.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "not a number of seconds".to_owned())
}

pub(crate) async fn run(arguments: Arguments) -> Outcome {
    let client = arguments.target.client()?;
    // A folder that cannot be written to is found out before the video is asked for.
    check_place(&arguments.out, &SaveOptions::default()).await?;
    let request: VideoGenerationRequest = VideoGenerationRequest::builder()
        .prompt(arguments.prompt)
        .model(arguments.model)
        .duration(arguments.duration)
        .resolution(arguments.resolution)
        .aspect_ratio(arguments.aspect_ratio)
        .try_into()
        .map_err(|error| Failure::Usage(format!("{error}")))?;
    // What the latest look-up found, for whoever watches.
    let state = Arc::new(Mutex::new("submitting the task".to_owned()));
    let options = WaitOptions { interval: arguments.interval, timeout: arguments.timeout, on_progress: None };
    let options = options.on_progress({
        let state = Arc::clone(&state);
        move |task| {
            *lock(&state) = format!("video task {} is {}", visible(&task.id), visible(task.status.as_str()));
        }
    });
    let videos = client.videos();
    let generations = videos.generations();
    let task = while_showing(&state, generations.create_and_wait(&request, options)).await?;
    generations.save(&task, &arguments.out, SaveOptions::default()).await?;
    writeln!(io::stdout().lock(), "{}", arguments.out.display())?;
    Ok(0)
}

fn lock(state: &Mutex<String>) -> MutexGuard<'_, String> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the wait; where a person watches, shows the state and how long it has taken so far.
async fn while_showing<T>(state: &Mutex<String>, wait: impl Future<Output = T>) -> T {
    let mut terminal = io::stderr();
    if !terminal.is_terminal() {
        return wait.await;
    }
    let started = Instant::now();
    let mut tick = interval(Duration::from_secs(1));
    tokio::pin!(wait);
    loop {
        tokio::select! {
            done = &mut wait => {
                // Clears the line. A terminal that cannot be written to shows nothing, and that is all.
                let _ = write!(terminal, "\r\x1b[K");
                return done;
            }
            _ = tick.tick() => {
                let (state, seconds) = (lock(state).clone(), started.elapsed().as_secs());
                let _ = write!(terminal, "\r\x1b[K{state}: {seconds} s");
            }
        }
    }
}
