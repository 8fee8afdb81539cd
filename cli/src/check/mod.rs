//! `gatewright check`: probes a service and writes its compatibility report (specification 2.12).

mod outputs;
mod progress;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use gatewright::report::{
    AgentMode, CheckId, Diff, Profile, Report, Status, Thresholds, Turn, Validator, annotations, terminal,
};
use gatewright::{API_KEY_VARIABLE, CA_BUNDLE_VARIABLE};
use gatewright_checkkit::{
    ApiKey, CancellationToken, CheckKit, DEFAULT_AGENT_TIMEOUT_MS, DEFAULT_BASE_PATH, DEFAULT_TIMEOUT_MS,
    Finished, Options,
};

use self::outputs::Outputs;
use self::progress::ProgressLine;
use crate::outcome::{FAILED, Failure, INTERRUPTED, Outcome, UNWRITABLE, say};
use crate::report::profile::ProfileOption;

const EXIT_CODES: &str = "The key is taken from GATEWRIGHT_API_KEY.

Exit codes:
  0    no check failed; with --baseline, none that did not fail in it
  1    a check failed; with --fail-on-skip, or was not run
  2    wrong usage or configuration; nothing was sent
  3    the report or another file cannot be written
  130  interrupted; the report is written all the same, what was not reached says so";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// Address of the service, without the base path
    #[arg(long, value_name = "URL", env = gatewright::BASE_URL_VARIABLE, hide_env = true)]
    endpoint: String,
    /// Path below the endpoint that the API's paths are appended to
    #[arg(long, value_name = "PATH", default_value = DEFAULT_BASE_PATH)]
    base_path: String,
    /// Models to check, in order [default: all of the profile]
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    models: Vec<String>,
    /// Run every check on every model; without it, the stream and the function tool on the first alone
    #[arg(long)]
    full: bool,
    /// Models to run the agent's program on. The service under test steers it: with a service you do not trust, run it
    /// where it can read nothing you would not hand over
    #[arg(long, value_name = "MODE", value_enum, default_value_t = Mode::Skipped)]
    agent_mode: Mode,
    /// Agent's program [default: that of GATEWRIGHT_AGENT_PROGRAM, else the one on the path]
    #[arg(long, value_name = "PROGRAM")]
    agent_program: Option<PathBuf>,
    /// Environment variables to hand on to the agent beside PATH
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    agent_env: Vec<String>,
    /// Time limit of a request, 1000 to 120000 ms
    #[arg(long, value_name = "MS", default_value_t = DEFAULT_TIMEOUT_MS, allow_negative_numbers = true,
          value_parser = milliseconds::<1000, 120_000>)]
    timeout_ms: u64,
    /// Time limit of a run of the agent, 5000 to 300000 ms
    #[arg(long, value_name = "MS", default_value_t = DEFAULT_AGENT_TIMEOUT_MS, allow_negative_numbers = true,
          value_parser = milliseconds::<5000, 300_000>)]
    agent_timeout_ms: u64,
    /// Run these checks alone
    #[arg(long, value_name = "CHECK", value_delimiter = ',', value_parser = check_id())]
    only: Vec<CheckId>,
    /// Leave these checks out
    #[arg(long, value_name = "CHECK", value_delimiter = ',', value_parser = check_id())]
    skip: Vec<CheckId>,
    /// Exit with 1 if a check was not run, for whatever reason
    #[arg(long)]
    fail_on_skip: bool,
    /// Earlier report: what failed there may fail here
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Check the models at the same time
    #[arg(long)]
    parallel: bool,
    /// Where to write the report; - is standard output
    #[arg(long, short, value_name = "FILE", default_value = "report.json")]
    out: PathBuf,
    /// Write a page of the report, too; - is standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the report as JUnit XML, too; - is standard output
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print what failed for a CI system to show
    #[arg(long, value_name = "SYSTEM", value_enum)]
    annotations: Option<AnnotationsFor>,
    /// Folder for the evidence, one file per check that was run
    #[arg(long, value_name = "DIR")]
    evidence: Option<PathBuf>,
    #[command(flatten)]
    profile: ProfileOption,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
    Skipped,
    OneModel,
    AllModels,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AnnotationsFor {
    Github,
}

impl From<Mode> for AgentMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Skipped => Self::Skipped,
            Mode::OneModel => Self::OneModel,
            Mode::AllModels => Self::AllModels,
        }
    }
}

fn check_id() -> impl clap::builder::TypedValueParser<Value = CheckId> {
    PossibleValuesParser::new(CheckId::ALL.map(CheckId::name)).map(|name| {
        let known = CheckId::ALL.into_iter().find(|id| id.name() == name);
        known.expect("the parser lets none but these through")
    })
}

/// A time limit. Only what is no number of its type is refused here, the bounds are the check kit's to hold it to.
fn milliseconds<const MIN: u64, const MAX: u64>(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("must be a whole number of milliseconds from {MIN} to {MAX} (2.12)"))
}

pub(crate) async fn run(arguments: Arguments) -> Outcome {
    let profile = arguments.profile.read()?;
    let baseline = arguments.baseline.as_deref().map(|file| read_baseline(file, &profile)).transpose()?;
    let inputs = [("--baseline", arguments.baseline.as_deref()), ("--profile", arguments.profile.file())];
    let inputs: Vec<_> = inputs.into_iter().filter_map(|(option, file)| Some((option, file?))).collect();
    let outputs = Outputs::new(
        &arguments.out,
        arguments.html.as_deref(),
        arguments.junit.as_deref(),
        arguments.evidence.as_deref(),
        &inputs,
    )?;
    let key = std::env::var(API_KEY_VARIABLE).unwrap_or_default();
    let key =
        ApiKey::new(&key).map_err(|problem| Failure::Usage(format!("{problem}: set {API_KEY_VARIABLE}")))?;
    let (fail_on_skip, annotate) = (arguments.fail_on_skip, arguments.annotations);
    let kit = CheckKit::new(options(arguments, profile), &key)
        .map_err(|refused| Failure::Usage(refused.problems.join("\ngatewright: ")))?;

    let cancel = CancellationToken::new();
    let stop = crate::serve::stop_signal()
        .map_err(|error| Failure::Failed(format!("no signal handler: {error}")))?;
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
    let printed = print(&finished, &outputs, annotate == Some(AnnotationsFor::Github), baseline.as_ref());
    // With a closed terminal there is nobody to tell.
    if !finished.interrupted {
        printed?;
    }
    if let Err(problem) = written {
        say(&problem);
        return Ok(UNWRITABLE);
    }
    Ok(exit_code(&finished, baseline.as_ref(), fail_on_skip))
}

fn options(arguments: Arguments, profile: Profile) -> Options {
    let mut options = Options::new(arguments.endpoint);
    options.base_path = arguments.base_path;
    options.models = arguments.models;
    options.full = arguments.full;
    options.agent_mode = arguments.agent_mode.into();
    options.agent_program = arguments.agent_program;
    options.agent_env = arguments.agent_env;
    options.timeout_ms = arguments.timeout_ms;
    options.agent_timeout_ms = arguments.agent_timeout_ms;
    options.only = arguments.only;
    options.skip = arguments.skip;
    options.parallel = arguments.parallel;
    options.profile = profile;
    let bundle = std::env::var_os(CA_BUNDLE_VARIABLE).filter(|path| !path.is_empty());
    options.ca_bundle = bundle.map(PathBuf::from);
    options
}

/// Errors: the file cannot be read, or is no valid report.
fn read_baseline(file: &Path, profile: &Profile) -> Result<Report, Failure> {
    let validator = Validator::builder().profile(profile).build();
    crate::report::input::report(file, &validator)
}

/// What people see at the end: where a document goes to standard output, on standard error.
fn print(
    finished: &Finished,
    outputs: &Outputs,
    annotate: bool,
    baseline: Option<&Report>,
) -> io::Result<()> {
    let to_stderr = outputs.take_standard_output();
    let colour =
        if to_stderr { crate::report::colour(&io::stderr()) } else { crate::report::colour(&io::stdout()) };
    let mut text = terminal(&finished.report, colour);
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

/// Cells that fail and did not in the baseline.
fn new_failures(baseline: &Report, report: &Report) -> Vec<Turn> {
    let mut worse = Diff::of(baseline, report, Thresholds::default()).worse;
    worse.retain(|turn| turn.new == Status::Fail);
    worse
}

fn against(baseline: &Report, report: &Report) -> String {
    let new = new_failures(baseline, report).len();
    let failed = usize::try_from(report.summary.failed).unwrap_or(usize::MAX);
    format!("\nBaseline: {} failed there too, {new} did not\n", failed.saturating_sub(new))
}

fn exit_code(finished: &Finished, baseline: Option<&Report>, fail_on_skip: bool) -> u8 {
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

/// Whether progress is shown: only to somebody who is looking.
fn is_watched() -> bool {
    io::stderr().is_terminal()
}
