//! The human-readable log: `GATEWRIGHT_LOG=info` writes a line per attempt to stderr, `debug` adds headers and the
//! beginnings of bodies. Secrets are redacted: the keys of the client and of the attempt wherever they appear, and
//! other headers and query parameters by name. Everything else in a body is shown.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, LazyLock};

use futures_util::future::BoxFuture;
use http::HeaderMap;

use crate::transport::middleware::{Attempt, Middleware, Outcome};
use crate::transport::secret::{self, KnownKeys, RedactedHeaders, Secrets};
use crate::wire::error::Error;
use crate::wire::redact::Redactor;
use gatewright_safe::visible::visible;

/// Environment variable with the level: `info`, `debug`, or `off`.
///
/// ```
/// use gatewright::LOG_VARIABLE;
///
/// assert_eq!(LOG_VARIABLE, "GATEWRIGHT_LOG");
/// // A program reads it when it builds its first client.
/// let mut program = std::process::Command::new("my-program");
/// program.env(LOG_VARIABLE, "debug");
/// ```
pub const LOG_VARIABLE: &str = "GATEWRIGHT_LOG";

/// Maximum size of a body in the log, in bytes.
const MAX_SHOWN_BODY_BYTES: usize = 4096;
/// Size of the part of a body that is redacted. It is larger than the part that is shown, so that a secret across the
/// cut is redacted whole.
const MAX_READ_BODY_BYTES: usize = 1024 * 1024;

/// Read when the first client of the process is built.
static LEVEL: LazyLock<Option<LogLevel>> = LazyLock::new(|| {
    let text = std::env::var(LOG_VARIABLE).unwrap_or_default();
    LogLevel::parse(&text).unwrap_or_else(|| {
        write(&format!("gatewright: {LOG_VARIABLE} is {text:?}: it must be info, debug or off\n"));
        None
    })
});

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LogLevel {
    Info,
    Debug,
}

/// Logs every attempt.
struct Log {
    level: LogLevel,
    /// The client's own keys.
    keys: Arc<KnownKeys>,
}

/// The log, if the environment enables it. It must be the innermost middleware, to see what is actually sent.
pub(crate) fn from_environment(keys: &Arc<KnownKeys>) -> Option<impl Middleware + use<>> {
    LEVEL.map(|level| Log { level, keys: Arc::clone(keys) })
}

impl LogLevel {
    /// None for an unknown level.
    #[expect(clippy::option_option, reason = "no level requested, and no such level")]
    fn parse(text: &str) -> Option<Option<Self>> {
        match text.trim().to_ascii_lowercase().as_str() {
            "" | "off" => Some(None),
            "info" => Some(Some(Self::Info)),
            "debug" => Some(Some(Self::Debug)),
            _ => None,
        }
    }
}

impl Middleware for Log {
    fn after<'a>(&'a self, attempt: &'a Attempt, outcome: &'a Outcome) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async {
            write(&lines(self.level, attempt, outcome, &self.keys));
            Ok(())
        })
    }
}

/// A closed stderr must not make a call fail.
fn write(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// The log entry of an attempt: whole lines, the first of which is the summary.
fn lines(level: LogLevel, attempt: &Attempt, outcome: &Outcome, keys: &Arc<KnownKeys>) -> String {
    let mut first = format!(
        "{} attempt {}: {} {}: ",
        attempt.operation().id,
        attempt.number(),
        attempt.method().as_str(),
        secret::redacted_url(&attempt.request.url)
    );
    if let Some(status) = outcome.status() {
        // Writing to a String does not fail, here and below.
        let _ = write!(first, "{status} ");
    }
    if let Some(error) = outcome.error() {
        let _ = write!(first, "{} ({}) ", error.kind().name(), error.message());
    }
    let _ = write!(first, "after {:.3} s", outcome.elapsed().as_secs_f64());
    if let Some(id) = outcome.request_id() {
        let _ = write!(first, ", request {id}");
    }
    let redactor = Secrets::of(&attempt.request, keys).redactor();
    let mut lines = vec![redactor.redact(&first)];
    if level == LogLevel::Debug {
        describe(&mut lines, '>', attempt.headers(), attempt.body(), &redactor);
        if let Some(headers) = outcome.headers() {
            describe(&mut lines, '<', headers, outcome.body().map(AsRef::as_ref), &redactor);
        }
    }
    let mut text = String::new();
    for line in lines {
        text.push_str("gatewright: ");
        // A log is read line by line.
        text.push_str(&visible(&line));
        text.push('\n');
    }
    text
}

fn describe(
    lines: &mut Vec<String>,
    direction: char,
    headers: &HeaderMap,
    body: Option<&[u8]>,
    redactor: &Redactor,
) {
    lines.push(redactor.redact(&format!("  {direction} {:?}", RedactedHeaders(headers))));
    if let Some(body) = body.filter(|body| !body.is_empty()) {
        // Redaction looks slightly beyond the part that is shown.
        let text = String::from_utf8_lossy(&body[..body.len().min(MAX_READ_BODY_BYTES)]);
        let (shown, _) = redactor.redact_beginning(&text, MAX_SHOWN_BODY_BYTES);
        let rest = body.len().saturating_sub(MAX_SHOWN_BODY_BYTES);
        let rest = if rest == 0 { String::new() } else { format!(" … and {rest} bytes more") };
        lines.push(format!("  {direction} {shown}{rest}"));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::transport::middleware::SuccessResponse;
    use crate::transport::outgoing::Outgoing;
    use crate::wire::api_key::ApiKey;
    use crate::wire::error::{Error, ErrorKind};

    fn attempt() -> Attempt {
        let url = "http://h:1/v1/chat/completions?api_key=canary-query&page=1".parse().expect("a URL");
        let mut request = Outgoing::new(http::Method::POST, url);
        for (name, value) in
            [("authorization", "Bearer sk-canary"), ("x-tenant", "blue"), ("x-api-key", "canary-two")]
        {
            request.headers.insert(name, value.parse().expect("a value"));
        }
        request.body = Some(r#"{"model":"m"}"#.into());
        Attempt {
            operation: &crate::api::operations::CREATE_CHAT_COMPLETION,
            request,
            number: 2,
            max_retries: 2,
            remaining: Duration::from_secs(1),
            previous: None,
        }
    }

    fn answered(body: &str) -> Outcome {
        let headers = [("x-request-id", "req_1"), ("set-cookie", "id=canary-cookie")];
        let headers = headers.map(|(name, value)| {
            (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
        });
        let answered = SuccessResponse {
            status: 200,
            headers: HeaderMap::from_iter(headers),
            body: Some(bytes::Bytes::copy_from_slice(body.as_bytes())),
        };
        Outcome { elapsed: Duration::from_millis(1234), answer: Ok(answered) }
    }

    #[test]
    fn info_logs_one_line_per_attempt() {
        assert_eq!(
            lines(LogLevel::Info, &attempt(), &answered("{}"), &Arc::default()),
            "gatewright: create_chat_completion attempt 2: POST \
             http://h:1/v1/chat/completions?api_key=redacted&page=1: 200 after 1.234 s, request req_1\n"
        );
        let error = Error::new(ErrorKind::Connection, "refused\x1b[2J\nsk-canary");
        let failed = Outcome { elapsed: Duration::ZERO, answer: Err(error) };
        assert_eq!(
            lines(LogLevel::Info, &attempt(), &failed, &Arc::default()),
            "gatewright: create_chat_completion attempt 2: POST \
             http://h:1/v1/chat/completions?api_key=redacted&page=1: connection (refused\\u{1b}[2J\\u{a}[redacted]) \
             after 0.000 s\n"
        );
    }

    #[test]
    fn debug_logs_headers_and_truncated_bodies_without_secrets() {
        let body = format!("{{\"echo\":\"sk-canary canary-query\",\"text\":\"{}\"}}", "x".repeat(5000));
        let shown = lines(LogLevel::Debug, &attempt(), &answered(&body), &Arc::default());
        assert!(!shown.contains("canary"), "{shown}");
        assert!(shown.contains(r#""x-tenant": "blue""#) && shown.contains(r#"> {"model":"m"}"#), "{shown}");
        assert!(
            shown.contains(&format!("… and {} bytes more", body.len() - MAX_SHOWN_BODY_BYTES)),
            "{shown}"
        );
        assert_eq!(shown.lines().count(), 5, "{shown}");
    }

    #[test]
    fn keys_not_carried_by_the_attempt_are_redacted_too() {
        let keys = Arc::<KnownKeys>::default();
        for key in ["canary-own", "canary-own-later"] {
            keys.remember(&ApiKey::new(key).expect("a key"));
        }
        let body = r#"{"keys":"canary-own canary-own-later"}"#;
        let shown = lines(LogLevel::Debug, &attempt(), &answered(body), &keys);
        assert!(!shown.contains("canary") && !shown.contains("-later"), "{shown}");
    }

    #[test]
    fn secret_at_the_truncation_point_is_fully_redacted() {
        for before in MAX_SHOWN_BODY_BYTES - 9..=MAX_SHOWN_BODY_BYTES {
            let answered = answered(&format!("{}sk-canary", "x".repeat(before)));
            let shown = lines(LogLevel::Debug, &attempt(), &answered, &Arc::default());
            assert!(!shown.contains("xs"), "{before}");
        }
    }

    #[test]
    fn log_level_parsing_ignores_case_and_white_space() {
        assert_eq!(LogLevel::parse(" Debug "), Some(Some(LogLevel::Debug)));
        assert_eq!(LogLevel::parse("INFO"), Some(Some(LogLevel::Info)));
        assert_eq!(LogLevel::parse("off"), Some(None));
        assert_eq!(LogLevel::parse(""), Some(None));
        assert_eq!(LogLevel::parse("trace"), None);
    }
}
