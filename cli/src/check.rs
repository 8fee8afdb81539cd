//! `gatewright check`: probes a service and writes its compatibility report (specification 2.12).

mod generated;
mod outputs;
mod progress;
pub(crate) mod values;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use gatewright::report::{Diff, Profile, Report, Status, Thresholds, Turn, Validator, annotations, terminal};
use gatewright::{API_KEY_VARIABLE, CA_BUNDLE_VARIABLE};
use gatewright_checkkit::{ApiKey, CancellationToken, CheckKit, Options, RunResult};

use self::outputs::Outputs;
use self::progress::ProgressLine;
use self::values::AnnotationsFor;
use crate::check::generated::check_flags::CheckFlags;
use crate::exit::{Exit, FAILED, Failure, INTERRUPTED, UNWRITABLE, say};
use crate::report::input;
use crate::signals::{Hangup, stop_signal};
use crate::terminal::colour;

const EXIT_CODES: &str = "The key is read from GATEWRIGHT_API_KEY.

Exit codes:
  0    no check failed; with --baseline, no check newly failed
  1    a check failed or, with --fail-on-skip, was skipped
  2    wrong usage or configuration; nothing was sent
  3    the report or another file cannot be written
  130  interrupted; the report is still written and marks the checks not reached";

/// Its arguments: the flags are generated from `spec/options.json`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    flags: CheckFlags,
}

pub(crate) async fn run(CheckArguments { flags }: CheckArguments) -> Exit {
    let profile = flags.profile.read()?;
    let baseline = flags.baseline.as_deref().map(|file| read_baseline(file, &profile)).transpose()?;
    let inputs = [("--baseline", flags.baseline.as_deref()), ("--profile", flags.profile.file())];
    let inputs: Vec<_> = inputs.into_iter().filter_map(|(option, file)| Some((option, file?))).collect();
    let outputs = Outputs::new(
        &flags.out,
        flags.html.as_deref(),
        flags.junit.as_deref(),
        flags.evidence.as_deref(),
        &inputs,
    )?;
    let key = std::env::var(API_KEY_VARIABLE).unwrap_or_default();
    let key = ApiKey::trimmed(&key)
        .map_err(|problem| Failure::Usage(format!("{problem}: set {API_KEY_VARIABLE}")))?;
    let (fail_on_skip, annotate) = (flags.fail_on_skip, flags.annotations);
    let kit = CheckKit::new(options(&flags, profile), &key)
        .map_err(|refused| Failure::Usage(refused.problems.join("\ngatewright: ")))?;

    let cancel = CancellationToken::new();
    let stop = stop_signal(Hangup::Stops)
        .map_err(|error| Failure::Failed(format!("cannot install a signal handler: {error}")))?;
    let line = ProgressLine::new(kit.cells());
    let finished = {
        let show = |progress| line.show(&progress);
        let running = kit.run(&show, &cancel);
        tokio::pin!(running, stop);
        tokio::select! {
            finished = &mut running => finished,
            () = &mut stop => {
                cancel.cancel();
                running.await
            }
        }
    };
    line.end();
    let written = outputs.write(&finished);
    let places = if written.is_ok() { outputs.places() } else { String::new() };
    let printed =
        print(&finished, &outputs, &places, annotate == Some(AnnotationsFor::Github), baseline.as_ref());
    // A closed terminal needs no message.
    if !finished.interrupted {
        printed?;
    }
    if let Err(problem) = written {
        say(&problem);
        return Ok(UNWRITABLE);
    }
    Ok(exit_code(&finished, baseline.as_ref(), fail_on_skip))
}

fn options(flags: &CheckFlags, profile: Profile) -> Options {
    let mut options = flags.options(profile);
    let bundle = std::env::var_os(CA_BUNDLE_VARIABLE).filter(|path| !path.is_empty());
    options.ca_bundle = bundle.map(PathBuf::from);
    options
}

/// Errors: the file cannot be read or is not a valid report.
fn read_baseline(file: &Path, profile: &Profile) -> Result<Report, Failure> {
    let validator = Validator::builder().profile(profile).build();
    input::report(file, &validator)
}

/// The human-readable summary; goes to standard error if a document goes to standard output.
fn print(
    finished: &RunResult,
    outputs: &Outputs,
    places: &str,
    annotate: bool,
    baseline: Option<&Report>,
) -> io::Result<()> {
    let to_stderr = outputs.take_standard_output();
    let colour = if to_stderr { colour(&io::stderr()) } else { colour(&io::stdout()) };
    let mut text = terminal(&finished.report, colour);
    if !places.is_empty() {
        text.push('\n');
        text.push_str(places);
    }
    if let Some(baseline) = baseline {
        text.push_str(&against(baseline, &finished.report));
    }
    if annotate {
        text.push_str(&annotations(&finished.report));
    }
    if to_stderr {
        io::stderr().lock().write_all(text.as_bytes())
    } else {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

/// Cells that fail now and did not fail in the baseline.
fn new_failures(baseline: &Report, report: &Report) -> Vec<Turn> {
    let mut worse = Diff::of(baseline, report, Thresholds::default()).worse;
    worse.retain(|turn| turn.new == Status::Fail);
    worse
}

fn against(baseline: &Report, report: &Report) -> String {
    let new = new_failures(baseline, report).len();
    let failed = usize::try_from(report.summary.failed).unwrap_or(usize::MAX);
    format!("\nBaseline: {} failed before, {new} newly failed\n", failed.saturating_sub(new))
}

fn exit_code(finished: &RunResult, baseline: Option<&Report>, fail_on_skip: bool) -> u8 {
    let report = &finished.report;
    let failed = match baseline {
        Some(baseline) => !new_failures(baseline, report).is_empty(),
        None => report.summary.failed > 0,
    };
    if finished.interrupted {
        INTERRUPTED
    } else if failed || fail_on_skip && report.summary.skipped > 0 {
        FAILED
    } else {
        0
    }
}
