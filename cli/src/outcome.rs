//! How commands end: exit codes, and what is said on standard error.

use std::io::{self, ErrorKind, Write as _};

use gatewright::ErrorKind as Kind;
use gatewright::visible::{visible, visible_lines};

/// Exit code: something failed, or a document is invalid.
pub(crate) const FAILED: u8 = 1;
/// Exit code: wrong usage or configuration, or a file that cannot be read.
pub(crate) const USAGE: u8 = 2;
/// Exit code: what was made cannot be written.
pub(crate) const UNWRITABLE: u8 = 3;
/// Exit code: Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;
/// What a shell reports of a program that SIGPIPE ended.
const PIPE_CLOSED: u8 = 141;

/// How a command ended: its exit code, or why it was given up.
pub(crate) type Outcome = Result<u8, Failure>;

/// Why a command was given up.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Whoever read our output has had enough. Nothing to say.
    PipeClosed,
    /// Ctrl-C.
    Interrupted,
    /// The command cannot do what it was asked to: wrong arguments, variables, files.
    Usage(String),
    /// It tried and failed.
    Failed(String),
}

impl From<gatewright::Error> for Failure {
    fn from(error: gatewright::Error) -> Self {
        let mut message = visible(&error.to_string()).into_owned();
        for violation in error.violations() {
            message.push_str("\n  ");
            message.push_str(&visible(&violation.to_string()));
        }
        let mut cause = std::error::Error::source(&error);
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

/// For writing to standard output, the only place where an error of the system is passed on as it is.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::PipeClosed,
            _ => Self::Failed(format!("cannot write to standard output: {error}")),
        }
    }
}

/// The exit code; says on standard error why a command was given up.
pub(crate) fn exit_code(outcome: Outcome) -> u8 {
    match outcome {
        Ok(code) => code,
        Err(Failure::PipeClosed) => PIPE_CLOSED,
        Err(Failure::Interrupted) => INTERRUPTED,
        Err(Failure::Usage(message)) => {
            say(&message);
            USAGE
        }
        Err(Failure::Failed(message)) => {
            say(&message);
            FAILED
        }
    }
}

/// Writes a line, or several, to standard error, with nothing in it that a terminal acts on. If that is closed, nobody is
/// listening.
pub(crate) fn say(message: &str) {
    let _ = writeln!(io::stderr().lock(), "gatewright: {}", visible_lines(message));
}
