//! Whether standard output and standard error are terminals.

use std::io::{self, IsTerminal};

/// Whether to write colours to a stream.
pub(crate) fn colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether to show progress: only on a terminal.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}
