//! Why a check failed: the closed set of categories of this kit, and the other members of the report's `error`.

use std::fmt;

use gatewright::ErrorBody;

/// Category of a failure, as in `error.category` of a report. The schema allows other kits to use other words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    /// The kit cannot run the check in this environment: the agent's program is missing.
    Configuration,
    /// The host's name has no address.
    Dns,
    /// The connection could not be established.
    Connect,
    /// The TLS handshake failed: an unknown certificate, or a server without TLS.
    Tls,
    /// The connection ended before the response was complete.
    ConnectionLost,
    /// The response, or the agent's run, was not complete in time.
    Timeout,
    /// Status 401 or 403.
    Auth,
    /// Status 429.
    RateLimit,
    /// Any other unexpected status.
    HttpStatus,
    /// The content type does not match the protocol.
    ContentType,
    /// The bytes break the protocol: HTTP, JSON, UTF-8, event stream or order of events.
    Protocol,
    /// A JSON value has the wrong form.
    Schema,
    /// The service responded, and reported a failure in the response.
    Response,
    /// The response is well formed, but does not match the request.
    Verification,
    /// The agent's program failed, or did something beyond its task.
    Agent,
    /// A defect of the kit itself.
    Internal,
}

impl Category {
    /// The name in a report.
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

    /// The category for an unexpected HTTP status.
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

/// The report's `error`, before redaction.
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

    /// A failure that the service reports: `lead`, then the service's message.
    pub(crate) fn reported(category: Category, lead: &str, body: ErrorBody) -> Self {
        let message = match &body.message {
            Some(message) => format!("{lead}: {message}"),
            None => lead.to_owned(),
        };
        Self { category, message, code: body.code, param: body.param, error_type: body.error_type }
    }
}
