//! `gatewright check`: probes a service and writes its compatibility report (specification 2.12).

mod generated;
mod outputs;
mod progress;
pub(crate) mod values;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use gatewright::report::{
    Diff, Profile, ProtocolReport, Report, Status, Thresholds, Turn, Validator, annotations, terminal,
};
use gatewright::{API_KEY_VARIABLE, CA_BUNDLE_VARIABLE};
use gatewright_checkkit::{ApiKey, CancellationToken, CheckKit, Options, RunResult};
use serde_json::{Value, json};

use self::outputs::Outputs;
use self::progress::ProgressLine;
use self::values::AnnotationsFor;
use crate::check::generated::check_flags::CheckFlags;
use crate::exit::{Exit, FAILED, Failure, INTERRUPTED, UNWRITABLE, print_message};
use crate::json;
use crate::report::input;
use crate::signals::{Hangup, stop_signal};
use crate::target::Address;
use crate::terminal::colour;

const EXIT_CODES: &str =
    "The key is read from GATEWRIGHT_API_KEY [default: the saved key, if you run the gateway on this machine].

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
    /// Print JSON: the report and the additional checks; the summary goes to standard error
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(CheckArguments { flags, json: prints_json }: CheckArguments) -> Exit {
    let profile = flags.profile.read()?;
    let baseline = flags.baseline.as_deref().map(|file| read_baseline(file, &profile)).transpose()?;
    let inputs = [("--baseline", flags.baseline.as_deref()), ("--profile", flags.profile.file())];
    let inputs: Vec<_> = inputs.into_iter().filter_map(|(option, file)| Some((option, file?))).collect();
    let outputs = Outputs::new(&flags, prints_json, &inputs)?;
    let address = Address::of(flags.endpoint.as_deref())?;
    let key = if let Some(key) = address.saved_key()? {
        key
    } else {
        let key = std::env::var(API_KEY_VARIABLE).unwrap_or_default();
        ApiKey::trimmed(&key)
            .map_err(|problem| Failure::Usage(format!("{problem}: set {API_KEY_VARIABLE}")))?
    };
    let (fail_on_skip, annotate) = (flags.fail_on_skip, flags.annotations);
    let kit = CheckKit::new(options(&flags, address.url, profile), &key)
        .map_err(|refused| Failure::Usage(refused.problems.join("\ngatewright: ")))?;

    let cancel = CancellationToken::new();
    let stop = stop_signal(Hangup::Stops)
        .map_err(|error| Failure::Failed(format!("cannot install a signal handler: {error}")))?;
    let line = ProgressLine::new(kit.cells());
    tokio::pin!(stop);
    let finished = {
        let show = |progress| line.show(&progress);
        let running = kit.run(&show, &cancel);
        tokio::pin!(running);
        tokio::select! {
            finished = &mut running => finished,
            () = &mut stop => {
                cancel.cancel();
                running.await
            }
        }
    };
    line.end();
    let interrupted = finished.interrupted;
    let written = outputs.write(&finished);
    let places = if written.is_ok() { outputs.places() } else { String::new() };
    let annotate = annotate == Some(AnnotationsFor::Github);
    let mut printed = Ok(());
    if prints_json {
        printed = json::write(&mut io::stdout().lock(), &document(&finished, baseline.as_ref()));
    }
    let printed = printed.and_then(|()| print(&finished, &outputs, &places, annotate, baseline.as_ref()));
    // A closed terminal needs no message.
    if !interrupted {
        printed?;
    }
    if let Err(problem) = written {
        print_message(&problem);
        return Ok(UNWRITABLE);
    }
    if interrupted {
        return Ok(INTERRUPTED);
    }
    let has_failed = finished.protocols.as_ref().is_some_and(|document| !document.passed());
    Ok(if has_failed { FAILED } else { exit_code(&finished, baseline.as_ref(), fail_on_skip) })
}

fn options(flags: &CheckFlags, endpoint: String, profile: Profile) -> Options {
    let mut options = flags.options(endpoint, profile);
    let bundle = std::env::var_os(CA_BUNDLE_VARIABLE).filter(|path| !path.is_empty());
    options.ca_bundle = bundle.map(PathBuf::from);
    options
}

/// Errors: the file cannot be read or is not a valid report.
fn read_baseline(file: &Path, profile: &Profile) -> Result<Report, Failure> {
    let validator = Validator::builder().profile(profile).own_names(true).build();
    input::report(file, &validator)
}

/// The document of `--json`: both documents of the run, and the cells that newly failed, if there is a baseline.
fn document(finished: &RunResult, baseline: Option<&Report>) -> Value {
    let cell = |turn: Turn| json!({ "id": turn.id, "model": turn.model });
    let new = baseline.map(|baseline| new_failures(baseline, &finished.report));
    json!({
        "report": finished.report,
        "protocols": finished.protocols,
        "interrupted": finished.interrupted,
        "new_failures": new.map(|new| new.into_iter().map(cell).collect::<Vec<_>>()),
    })
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
    if let Some(protocols) = &finished.protocols {
        text.push('\n');
        text.push_str(&protocols.to_text(colour));
    }
    if !places.is_empty() {
        text.push('\n');
        text.push_str(places);
    }
    if let Some(baseline) = baseline {
        text.push_str(&against(baseline, &finished.report));
    }
    if annotate {
        text.push_str(&annotations(&finished.report));
        text.push_str(&finished.protocols.as_ref().map(ProtocolReport::to_annotations).unwrap_or_default());
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
    if failed || fail_on_skip && report.summary.skipped > 0 { FAILED } else { 0 }
}
