//! The context of a check, and its HTTP request.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use gatewright::ErrorBody;
use gatewright::report::SCHEMA;
use serde_json::Value;

use crate::agent::Agent;
use crate::cell::Cell;
use crate::exchange::{Exchange, Received, Service};
use crate::failure::{Category, Failure};
use crate::listed_model::ListedModel;
use crate::redaction::Redactor;

/// Maximum size of an error body to parse for its message, in bytes.
const ERROR_BODY_BYTES: usize = 64 << 10;

/// The context of a check.
pub(crate) struct Context<'a> {
    pub(crate) service: &'a Service,
    pub(crate) redactor: &'a Redactor,
    /// New for each run: a response that contains it was made for this run.
    pub(crate) token: &'a str,
    pub(crate) agent: Option<&'a Agent>,
    /// The model list, once its check has passed.
    pub(crate) listed: Option<&'a [ListedModel]>,
}

/// The prompt of the text checks.
pub(crate) fn prompt(token: &str) -> String {
    format!("Reply with exactly this token and nothing else: {token}")
}

/// The headers that 2.12 lists.
static LISTED_HEADERS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the embedded schema is JSON");
    let headers = schema["$defs"]["response_headers"]["properties"].as_object();
    headers.expect("the schema lists headers").keys().cloned().collect()
});

/// Sends a request and checks the status and headers of the response; sets http_status, content_type, response_headers
/// and content_type_verified. Returns the response if its status is 200, even if another assertion fails.
pub(crate) async fn exchange(
    context: &Context<'_>,
    cell: &mut Cell,
    path: &str,
    body: Option<&Value>,
    media_type: &'static str,
) -> Option<(Received, Option<Failure>)> {
    let Exchange { request, answer, failure } = context.service.exchange(path, body, media_type).await;
    let Some(answer) = answer else {
        cell.exchanged(request, String::new());
        let failure = failure.unwrap_or_else(|| Failure::new(Category::Internal, "no answer and no failure"));
        cell.fail("answer", "an HTTP answer", failure.message.clone(), failure);
        return None;
    };
    cell.exchanged(request, answer.shown());
    let check = &mut cell.check;
    check.http_status = (100..=599).contains(&answer.status).then_some(answer.status.into());
    check.content_type = Some(answer.header("content-type"));
    let listed = LISTED_HEADERS.iter().filter_map(|name| Some((name.clone(), answer.header(name)?)));
    check.response_headers = Some(listed.collect::<BTreeMap<_, _>>());
    if answer.status != 200 {
        refuse_status(cell, &answer);
        return None;
    }
    cell.assert(Category::HttpStatus, "HTTP status", "200", "200", true);
    let found = answer.media_type();
    let verified = found.as_deref() == Some(media_type);
    cell.check.content_type_verified = Some(verified);
    let shown = found.unwrap_or_else(|| "none".to_owned());
    cell.assert(Category::ContentType, "content type", media_type, shown, verified);
    let encoding = answer.header("content-encoding").unwrap_or_else(|| "identity".to_owned());
    let plain = encoding.eq_ignore_ascii_case("identity") || encoding.is_empty();
    if !cell.assert(Category::Protocol, "content encoding", "identity, as requested", encoding, plain) {
        return None;
    }
    Some((answer, failure))
}

fn refuse_status(cell: &mut Cell, answer: &Received) {
    let error_body = ErrorBody::read(&answer.body[..answer.body.len().min(ERROR_BODY_BYTES)]);
    let status = answer.status;
    let category =
        if (100..=599).contains(&status) { Category::of_status(status) } else { Category::Protocol };
    let failure = Failure::reported(category, &format!("status {status}"), error_body);
    cell.fail("HTTP status", "200", status.to_string(), failure);
}

/// Checks that the response is one complete JSON document, and parses it.
pub(crate) async fn json_exchange(
    context: &Context<'_>,
    cell: &mut Cell,
    path: &str,
    body: Option<&Value>,
) -> Option<Value> {
    let (answer, failure) = exchange(context, cell, path, body, "application/json").await?;
    let length = answer.body.len();
    if let Some(mut failure) = failure {
        failure.message = match failure.category {
            Category::ConnectionLost => {
                format!("the response was cut off after {length} bytes: {}", failure.message)
            }
            Category::Timeout => format!("{}: {length} bytes had arrived", failure.message),
            _ => failure.message,
        };
        cell.fail("body", "complete", failure.message.clone(), failure);
        return None;
    }
    let error = match serde_json::from_slice(&answer.body) {
        Ok(value) => {
            cell.assert(Category::Protocol, "body", "JSON", "JSON", true);
            return Some(value);
        }
        Err(error) => error,
    };
    let observed = format!("none ({error})");
    // The sender considered it complete: a service, or an intermediary that doesn't notice the end of what it forwards.
    let message = if answer.body.trim_ascii().is_empty() {
        "the response has no body".to_owned()
    } else if error.is_eof() {
        format!("the response was cut off after {length} bytes, in the middle of its JSON")
    } else {
        format!("body: expected JSON, found {observed}")
    };
    cell.fail("body", "JSON", observed, Failure::new(Category::Protocol, message));
    None
}
