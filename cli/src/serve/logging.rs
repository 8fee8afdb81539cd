//! The log of `gatewright serve`, on standard error, and its traces.
//!
//! On a terminal, it has short lines for a person, one per request. Elsewhere, it has complete records, only of what needs
//! attention unless more is requested.

use std::io::{self, IsTerminal as _};

use clap::{ArgAction, Args, ValueEnum};
use gatewright_gateway::{Log, LogFormat, LogLevel, Traces};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use super::lines::Lines;
use crate::exit::Failure;
use crate::terminal::Paint;

/// Environment variable with directives that replace the level of the flags.
const DIRECTIVES: &str = "RUST_LOG";

#[derive(Debug, Args)]
pub(super) struct Logging {
    /// Log a line for each request (always on a terminal); twice, also log connection events. `RUST_LOG` takes precedence
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
    /// Log only errors
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Format of the log [default: short lines on a terminal, else text]
    #[arg(long, value_enum)]
    log_format: Option<LogFormatFlag>,
    /// Address of an OpenTelemetry collector that receives a trace of each request over OTLP/HTTP, such as http://127.0.0.1:4318
    #[arg(long, value_name = "URL", env = "GATEWRIGHT_SERVE_OTLP_ENDPOINT", hide_env_values = true)]
    otlp_endpoint: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogFormatFlag {
    /// One record per line, with all its fields
    Text,
    /// One JSON object per line
    Json,
}

/// The log's reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// A person at a terminal.
    Person,
    /// A file, or a log collector.
    Program(LogFormat),
}

impl Logging {
    /// Starts logging and tracing, with the configuration file's settings unless a flag overrides them. Does nothing if
    /// the process already has a log. Returns the traces, which must be shut down.
    pub(super) fn begin(&self, of_file: &Log) -> Result<Option<Traces>, Failure> {
        let reader = self.reader(of_file.format, io::stderr().is_terminal());
        let filter = EnvFilter::try_new(self.directives(of_file.level, reader)).map_err(|error| {
            Failure::Usage(format!(
                "{DIRECTIVES} is not a valid list of directives such as info,hyper=warn: {error}"
            ))
        })?;
        // An empty variable counts as unset.
        let endpoint = self.otlp_endpoint.as_deref().filter(|endpoint| !endpoint.is_empty());
        let endpoint = endpoint.or(of_file.otlp_endpoint.as_deref());
        let traces =
            endpoint.map(Traces::to).transpose().map_err(|error| Failure::Usage(error.to_string()))?;
        let log = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false);
        let log = match reader {
            Reader::Person => {
                log.event_format(Lines { paint: Paint::on(&io::stderr()) }).with_filter(filter).boxed()
            }
            Reader::Program(LogFormat::Json) => {
                let log = log.json().flatten_event(true).with_current_span(false).with_span_list(false);
                log.with_filter(filter).boxed()
            }
            Reader::Program(_) => log.with_filter(filter).boxed(),
        };
        // Setting a second log fails, for example in a program that calls this one.
        _ = tracing_subscriber::registry().with(log).with(traces.as_ref().map(Traces::layer)).try_init();
        Ok(traces)
    }

    /// The keys of the configuration file that have changed since the start and only take effect after a restart. Keys
    /// overridden by a flag or a variable have no effect at all.
    pub(super) fn waiting(&self, at_start: &Log, now: &Log) -> Vec<&'static str> {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let has_level = self.quiet || self.verbose > 0 || is_set(DIRECTIVES);
        let has_endpoint = self.otlp_endpoint.as_deref().is_some_and(|endpoint| !endpoint.is_empty());
        let same = [
            ("observe.log_level", has_level || at_start.level == now.level),
            ("observe.log_format", self.log_format.is_some() || at_start.format == now.format),
            ("observe.otlp_endpoint", has_endpoint || at_start.otlp_endpoint == now.otlp_endpoint),
        ];
        same.into_iter().filter(|(_, same)| !same).map(|(key, _)| key).collect()
    }

    /// An explicitly chosen format is for programs.
    fn reader(&self, of_file: LogFormat, is_terminal: bool) -> Reader {
        match self.log_format {
            Some(LogFormatFlag::Json) => Reader::Program(LogFormat::Json),
            Some(LogFormatFlag::Text) => Reader::Program(LogFormat::Text),
            None if is_terminal && of_file != LogFormat::Json => Reader::Person,
            None => Reader::Program(of_file),
        }
    }

    /// The filter directives of the log: from the variable, otherwise from the flags, otherwise from the configuration
    /// file.
    fn directives(&self, of_file: LogLevel, reader: Reader) -> String {
        let given = std::env::var(DIRECTIVES).unwrap_or_default();
        if !given.is_empty() {
            return given;
        }
        let directives = match self.level(of_file, reader) {
            LogLevel::Error => "error",
            LogLevel::Info => "warn,gatewright_gateway=info,gatewright_store=info",
            LogLevel::Debug => "info,gatewright_gateway=debug,gatewright_store=debug",
            LogLevel::Trace => "trace",
            LogLevel::Warn => "warn",
        };
        directives.to_owned()
    }

    fn level(&self, of_file: LogLevel, reader: Reader) -> LogLevel {
        match self.verbose {
            _ if self.quiet => LogLevel::Error,
            // A person at a terminal sees requests by default.
            0 if of_file == LogLevel::Warn && reader == Reader::Person => LogLevel::Info,
            0 => of_file,
            1 => LogLevel::Info,
            2 => LogLevel::Debug,
            _ => LogLevel::Trace,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        logging: Logging,
    }

    fn level(flags: &[&str], of_file: LogLevel, reader: Reader) -> LogLevel {
        let program = Program::try_parse_from(["gatewright"].iter().chain(flags)).expect("flags");
        program.logging.level(of_file, reader)
    }

    #[test]
    fn flags_override_the_configured_level_and_terminals_default_to_info() {
        let (person, program) = (Reader::Person, Reader::Program(LogFormat::Text));
        assert_eq!(level(&[], LogLevel::Warn, program), LogLevel::Warn);
        assert_eq!(level(&[], LogLevel::Warn, person), LogLevel::Info);
        assert_eq!(level(&[], LogLevel::Error, person), LogLevel::Error);
        assert_eq!(level(&[], LogLevel::Trace, program), LogLevel::Trace);
        assert_eq!(level(&["-q"], LogLevel::Trace, person), LogLevel::Error);
        assert_eq!(level(&["-v"], LogLevel::Error, program), LogLevel::Info);
        assert_eq!(level(&["-vv"], LogLevel::Warn, program), LogLevel::Debug);
        assert_eq!(level(&["-vvv"], LogLevel::Warn, program), LogLevel::Trace);
    }

    #[test]
    fn changed_log_settings_need_a_restart_unless_a_flag_overrides_them() {
        let waiting = |flags: &[&str]| {
            let program = Program::try_parse_from(["gatewright"].iter().chain(flags)).expect("flags");
            let endpoint = Some("http://127.0.0.1:4318".to_owned());
            let now = Log { format: LogFormat::Json, otlp_endpoint: endpoint, ..Log::default() };
            program.logging.waiting(&Log::default(), &now)
        };
        assert_eq!(waiting(&[]), ["observe.log_format", "observe.otlp_endpoint"]);
        assert_eq!(waiting(&["--log-format", "text"]), ["observe.otlp_endpoint"]);
        assert_eq!(waiting(&["--otlp-endpoint", "http://127.0.0.1:1"]), ["observe.log_format"]);
    }
}
