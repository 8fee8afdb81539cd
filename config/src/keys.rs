//! How an upstream's key is sent, and what else each request to it contains.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Where an upstream's key goes in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPlace {
    /// In a header, behind a prefix such as `Bearer `.
    Header {
        /// Name of the header.
        name: String,
        /// The text before the key.
        prefix: String,
    },
    /// In a query parameter with this name.
    Query(String),
}

impl KeyPlace {
    /// A header with the key after a prefix.
    pub fn header(name: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self::Header { name: name.into(), prefix: prefix.into() }
    }
}

/// A header or query parameter added to each request to an upstream. `Debug` hides a secret value.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestSetting {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Whether the value is a secret, which is redacted.
    pub is_secret: bool,
}

impl RequestSetting {
    /// A setting with a public value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into(), is_secret: false }
    }

    /// A setting with a secret value.
    pub fn secret(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { is_secret: true, ..Self::new(name, value) }
    }
}

impl fmt::Debug for RequestSetting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = if self.is_secret { gatewright::redact::REDACTED } else { &self.value };
        write!(formatter, "{}: {value}", self.name)
    }
}

/// A program that prints an upstream's key. `Debug` shows only its name: arguments may be secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyCommand {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// How long a key is valid. The program runs again before that ends.
    pub ttl: Duration,
    /// The folder it runs in.
    pub folder: PathBuf,
}

impl KeyCommand {
    /// A program with its arguments, which runs in this process's folder.
    pub fn new(words: impl IntoIterator<Item = impl Into<String>>, ttl: Duration) -> Self {
        Self { words: words.into_iter().map(Into::into).collect(), ttl, folder: PathBuf::new() }
    }

    /// The name of the program, for messages.
    pub fn program(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }
}

impl fmt::Debug for KeyCommand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("KeyCommand")
            .field("program", &self.program())
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}
