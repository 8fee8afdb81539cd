//! The log of `gatewright serve`, on standard error, and its traces.

use std::io;

use clap::{ArgAction, Args, ValueEnum};
use gatewright_gateway::{Log, LogFormat, LogLevel, Traces};
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::exit::Failure;

/// Environment variable whose directives replace the level of the flags.
const DIRECTIVES: &str = "RUST_LOG";

#[derive(Debug, Args)]
pub(super) struct Logging {
    /// Log a line for each request; twice, also what happens to connections. `RUST_LOG` has precedence
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
    /// Format of the log [default: text]
    #[arg(long, value_enum)]
    log_format: Option<Format>,
    /// Address of an OpenTelemetry collector that gets a trace of each request over OTLP/HTTP, such as http://127.0.0.1:4318
    #[arg(long, value_name = "URL", env = "GATEWRIGHT_SERVE_OTLP_ENDPOINT", hide_env_values = true)]
    otlp_endpoint: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    /// One object a line
    Json,
}

impl Logging {
    /// Begins to log and to trace, as the configuration file asks for where no flag does. Does nothing if the process has
    /// a log already. Returns the traces, which have to be ended.
    pub(super) fn begin(&self, of_file: &Log) -> Result<Option<Traces>, Failure> {
        let filter = self.filter(of_file.level).map_err(|error| {
            Failure::Usage(format!(
                "{DIRECTIVES} is not a list of directives such as info,hyper=warn: {error}"
            ))
        })?;
        // An empty variable counts as unset.
        let endpoint = self.otlp_endpoint.as_deref().filter(|endpoint| !endpoint.is_empty());
        let endpoint = endpoint.or(of_file.otlp_endpoint.as_deref());
        let traces =
            endpoint.map(Traces::to).transpose().map_err(|error| Failure::Usage(error.to_string()))?;
        let log = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false);
        let format = self.log_format.unwrap_or(match of_file.format {
            LogFormat::Json => Format::Json,
            _ => Format::Text,
        });
        let log = match format {
            Format::Text => log.with_filter(filter).boxed(),
            Format::Json => {
                let log = log.json().flatten_event(true).with_current_span(false).with_span_list(false);
                log.with_filter(filter).boxed()
            }
        };
        // A second log fails, for example in a program that calls this one.
        _ = tracing_subscriber::registry().with(log).with(traces.as_ref().map(Traces::layer)).try_init();
        Ok(traces)
    }

    fn filter(&self, of_file: LogLevel) -> Result<EnvFilter, ParseError> {
        let directives = std::env::var(DIRECTIVES).unwrap_or_default();
        let of_file = match of_file {
            LogLevel::Info => 1,
            LogLevel::Debug => 2,
            LogLevel::Trace => 3,
            _ => 0,
        };
        let directives = match (directives.as_str(), if self.verbose == 0 { of_file } else { self.verbose }) {
            ("", 0) => "warn",
            ("", 1) => "warn,gatewright_gateway=info",
            ("", 2) => "info,gatewright_gateway=debug",
            ("", _) => "trace",
            (given, _) => given,
        };
        EnvFilter::try_new(directives)
    }
}
