//! Exit codes, and the error messages on standard error.

use std::io::{self, ErrorKind, Write as _};

use gatewright::ErrorKind as Kind;
use gatewright::visible::{visible, visible_lines};

/// Exit code: something failed, or a document is invalid.
pub(crate) const FAILED: u8 = 1;
/// Exit code: wrong usage or configuration, or an unreadable file.
pub(crate) const USAGE: u8 = 2;
/// Exit code: the result cannot be written.
pub(crate) const UNWRITABLE: u8 = 3;
/// Exit code: Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;
/// Exit code that a shell reports for a program killed by SIGPIPE.
const PIPE_CLOSED: u8 = 141;

/// The result of a command: its exit code, or why it failed.
pub(crate) type Exit = Result<u8, Failure>;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader of our output closed the pipe. Prints no message.
    PipeClosed,
    /// Ctrl-C.
    Interrupted,
    /// Wrong usage: bad arguments, variables or files.
    Usage(String),
    /// The command ran and failed.
    Failed(String),
}

impl Failure {
    /// The message for the user; empty if there is none.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Usage(message) | Self::Failed(message) => message,
            Self::PipeClosed | Self::Interrupted => "",
        }
    }
}

impl Failure {
    /// A library error with a message of our own, followed by its violations and causes.
    pub(crate) fn worded(words: &str, error: &gatewright::Error) -> Self {
        let mut message = visible(words).into_owned();
        for violation in error.violations() {
            message.push_str("\n  ");
            message.push_str(&visible(&violation.to_string()));
        }
        let mut cause = std::error::Error::source(error).filter(|_| !quotes_its_cause(error));
        while let Some(source) = cause {
            let text = source.to_string();
            let text = visible(&text);
            if !message.contains(&*text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            cause = source.source();
        }
        match error.kind() {
            Kind::Configuration | Kind::Io => Self::Usage(message),
            _ => Self::Failed(message),
        }
    }
}

impl From<gatewright::Error> for Failure {
    fn from(error: gatewright::Error) -> Self {
        Self::worded(&(in_words(&error) + &next_step(&error)), &error)
    }
}

/// The error without the name of the client's method, which means nothing to users of the program.
pub(crate) fn in_words(error: &gatewright::Error) -> String {
    let status = error.status().map_or_else(String::new, |status| format!("status {status}: "));
    let request = error.request_id().map_or_else(String::new, |id| format!(" (request {id})"));
    format!("{status}{}{request}", error.message())
}

/// What to do about an error that its message doesn't say.
fn next_step(error: &gatewright::Error) -> String {
    match (error.kind(), error.retry_after()) {
        (Kind::RateLimit, Some(wait)) => {
            // Rounded up: a request before that time would fail again.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            format!("; try again in {seconds} s")
        }
        (Kind::Connection | Kind::Authentication, _) => {
            "; `gatewright doctor` helps to find out why".to_owned()
        }
        _ => String::new(),
    }
}

/// Whether the message already says why: the causes of a failed connection only add the names of libraries' layers.
fn quotes_its_cause(error: &gatewright::Error) -> bool {
    matches!(error.kind(), Kind::Connection | Kind::Timeout)
}

/// For writes to standard output, the only place that passes an I/O error on unchanged.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::PipeClosed,
            _ => Self::Failed(format!("cannot write to standard output: {error}")),
        }
    }
}

/// Converts a result to an exit code and prints the message of a failure to standard error.
pub(crate) fn exit_code(exit: Exit) -> u8 {
    match exit {
        Ok(code) => code,
        Err(Failure::PipeClosed) => PIPE_CLOSED,
        Err(Failure::Interrupted) => INTERRUPTED,
        Err(Failure::Usage(message)) => {
            print_message(&message);
            USAGE
        }
        Err(Failure::Failed(message)) => {
            print_message(&message);
            FAILED
        }
    }
}

/// Writes one or more lines to standard error, with control characters escaped. Ignores a closed standard error.
pub(crate) fn print_message(message: &str) {
    let _ = writeln!(io::stderr().lock(), "gatewright: {}", visible_lines(message));
}
