//! Why a check failed: the closed set of categories that this kit emits, and the rest of the report's `error`.

use std::fmt;

use gatewright::ErrorBody;

/// Kind of failure, as `error.category` of a report names it. The schema lets other kits use other words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    /// The kit cannot do the check where it runs: the agent's program is missing.
    Configuration,
    /// The host's name has no address.
    Dns,
    /// No connection came about.
    Connect,
    /// The TLS handshake failed: an unknown certificate, a server that speaks no TLS.
    Tls,
    /// The connection ended before the answer did.
    ConnectionLost,
    /// The answer, or the agent's run, was not complete in time.
    Timeout,
    /// Status 401 or 403.
    Auth,
    /// Status 429.
    RateLimit,
    /// Any other status that is not the one asked for.
    HttpStatus,
    /// The content type is not that of the protocol.
    ContentType,
    /// The bytes are not those of the protocol: HTTP, JSON, UTF-8, event stream, order of events.
    Protocol,
    /// A JSON value does not have the form it should have.
    Schema,
    /// The service answered, and said in the answer that it failed.
    Response,
    /// The answer is well formed and not what was asked for.
    Verification,
    /// The agent's program ended badly, or did what it was not asked to.
    Agent,
    /// A defect of the kit itself.
    Internal,
}

impl Category {
    /// Its name in a report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::ConnectionLost => "connection_lost",
            Self::Timeout => "timeout",
            Self::Auth => "auth",
            Self::RateLimit => "rate_limit",
            Self::HttpStatus => "http_status",
            Self::ContentType => "content_type",
            Self::Protocol => "protocol",
            Self::Schema => "schema",
            Self::Response => "response",
            Self::Verification => "verification",
            Self::Agent => "agent",
            Self::Internal => "internal",
        }
    }

    /// Of an HTTP status other than the one asked for.
    pub(crate) const fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => Self::Auth,
            429 => Self::RateLimit,
            _ => Self::HttpStatus,
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The report's `error`, not yet redacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) category: Category,
    pub(crate) message: String,
    pub(crate) code: Option<String>,
    pub(crate) param: Option<String>,
    pub(crate) error_type: Option<String>,
}

impl Failure {
    pub(crate) fn new(category: Category, message: impl Into<String>) -> Self {
        Self { category, message: message.into(), code: None, param: None, error_type: None }
    }

    pub(crate) fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// What the service says of its own failure: `lead`, then its message.
    pub(crate) fn told(category: Category, lead: &str, told: ErrorBody) -> Self {
        let message = match &told.message {
            Some(message) => format!("{lead}: {message}"),
            None => lead.to_owned(),
        };
        Self { category, message, code: told.code, param: told.param, error_type: told.error_type }
    }
}
