//! `--json`, the flag of every command whose result is also a JSON document.

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct JsonOption {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes a document for people and programs alike: indented, and with a newline at the end.
pub(crate) fn write(out: &mut impl Write, document: &impl Serialize) -> io::Result<()> {
    writeln!(out, "{}", text(document))
}

/// The document, indented.
pub(crate) fn text(document: &impl Serialize) -> String {
    serde_json::to_string_pretty(document).expect("plain values")
}
