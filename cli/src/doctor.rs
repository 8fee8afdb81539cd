//! `gatewright doctor`: finds out why a gateway can't be called, starting from this machine, and suggests what to
//! do.
//!
//! Each step has its own timeout, and a step that depends on a failed one is skipped.

mod connection;
mod finding;
mod network;
mod proxy;
mod service;
mod surroundings;
mod tls;

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use clap::{Args, ValueEnum};
use gatewright::environment_proxy;
use gatewright::visible::visible_lines;
use url::Url;

use self::finding::{Finding, FindingLevel, json, text};
use crate::exit::{Exit, FAILED};
use crate::json::JsonOption;
use crate::seconds::seconds;
use crate::target::Target;
use crate::terminal::Paint;

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Also send a short prompt over each protocol, which costs a few tokens
    #[arg(long)]
    call: bool,
    /// Model to call [default: the first listed model that the protocol serves]
    #[arg(long, short, requires = "call")]
    model: Option<String>,
    /// Timeout of each step, 1 to 60 s
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = step)]
    timeout: Duration,
    #[command(flatten)]
    format: JsonOption,
    /// An earlier spelling of `--json`
    #[arg(long, value_enum, default_value = "text", hide = true)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

fn step(text: &str) -> Result<Duration, String> {
    let bounds = Duration::from_secs(1)..=Duration::from_mins(1);
    let time = seconds(text).ok().filter(|time| bounds.contains(time));
    time.ok_or_else(|| "must be a number of seconds from 1 to 60".to_owned())
}

pub(crate) async fn run(arguments: DoctorArguments) -> Exit {
    let output = if arguments.format.json { Output::Json } else { arguments.output };
    let mut examined = DoctorReport::new(output);
    for finding in surroundings::examine() {
        examined.add(finding)?;
    }
    let address = gateway(&arguments, &mut examined).await?;
    let failed = examined.finish(address.as_ref())?;
    Ok(if failed { FAILED } else { 0 })
}

/// Checks the path to the gateway and the gateway itself. Returns its address, if there is one.
///
/// Checking the path needs no key: without one, only the steps in which the gateway needs the key are
/// skipped.
async fn gateway(arguments: &DoctorArguments, examined: &mut DoctorReport) -> io::Result<Option<Url>> {
    let (client, has_key) = match service::client(&arguments.target, arguments.timeout) {
        Ok(client) => (client, true),
        Err(finding) => {
            examined.add(finding)?;
            let Some(client) = service::keyless(&arguments.target, arguments.timeout) else {
                return Ok(None);
            };
            (client, false)
        }
    };
    let Ok(address) = Url::parse(client.base_url()) else {
        examined.add(Finding::new("address", FindingLevel::Fail, "the address is not a valid URL"))?;
        return Ok(None);
    };
    examined.add(Finding::new("address", FindingLevel::Ok, address.as_str().trim_end_matches('/')))?;
    let proxy = environment_proxy(&address);
    let is_reachable = network::examine(&address, proxy.as_ref(), arguments.timeout, examined).await?;
    let gateway = service::Gateway { client: &client, is_behind_proxy: proxy.is_some() };
    match (is_reachable, has_key) {
        (true, true) => gateway.examine(arguments, examined).await?,
        (true, false) => gateway.examine_without_key(examined).await?,
        (false, _) => {
            examined.add(Finding::new("gateway", FindingLevel::Skip, "no connection to it"))?;
        }
    }
    Ok(Some(address))
}

/// The findings so far. Text is printed immediately, because steps may be slow.
struct DoctorReport {
    findings: Vec<Finding>,
    output: Output,
    paint: Paint,
}

impl DoctorReport {
    fn new(output: Output) -> Self {
        Self { findings: Vec::new(), output, paint: Paint::on(&io::stdout()) }
    }

    fn add(&mut self, finding: Finding) -> io::Result<()> {
        if self.output == Output::Text {
            let mut out = io::stdout().lock();
            out.write_all(text(&finding, self.paint).as_bytes())?;
            out.flush()?;
        }
        self.findings.push(finding);
        Ok(())
    }

    /// Prints the summary. Returns whether something failed.
    fn finish(&self, address: Option<&Url>) -> io::Result<bool> {
        let count = |verdict| self.findings.iter().filter(|finding| finding.verdict == verdict).count();
        let (failed, warned) = (count(FindingLevel::Fail), count(FindingLevel::Warn));
        let mut out = io::stdout().lock();
        match self.output {
            Output::Json => {
                let address = address.map(|address| address.as_str().trim_end_matches('/'));
                let written = format!("{:#}", json(address, &self.findings));
                // A certificate may contain names with terminal escapes.
                let shown = if out.is_terminal() { visible_lines(&written) } else { written.as_str().into() };
                writeln!(out, "{shown}")?;
            }
            Output::Text => {
                let verdict = match (failed, warned) {
                    (0, 0) => "No problems found.".to_owned(),
                    (0, warned) => format!("It works; worth checking: {warned}."),
                    (failed, 0) => format!("To fix: {failed}."),
                    (failed, warned) => format!("To fix: {failed}; worth checking: {warned}."),
                };
                writeln!(out, "\n{verdict}")?;
            }
        }
        out.flush()?;
        Ok(failed > 0)
    }
}
