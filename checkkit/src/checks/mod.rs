//! The six checks of section 2.12, one file each, and what those over HTTP have in common.

mod agent_cli_smoke;
mod model_access;
mod models_endpoint;
mod responses_function_tool;
mod responses_stream;
mod responses_text;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use gatewright::ErrorBody;
use gatewright::report::{CheckId, SCHEMA};
use serde_json::Value;

use crate::agent::Agent;
use crate::cell::Cell;
use crate::exchange::{Answer, Exchange, Service};
use crate::failure::{Category, Failure};
use crate::redaction::Redactor;

/// Most of an error's body that is read for its message, in bytes.
const ERROR_BODY_BYTES: usize = 64 << 10;

/// What a check works with.
pub(crate) struct Context<'a> {
    pub(crate) service: &'a Service,
    pub(crate) redactor: &'a Redactor,
    /// Fresh for each run: an answer that holds it was made for this run.
    pub(crate) token: &'a str,
    pub(crate) agent: Option<&'a Agent>,
    /// Ids of the model list, once the check of it has passed.
    pub(crate) listed: Option<&'a [String]>,
}

/// What a check leaves behind.
pub(crate) struct Checked {
    pub(crate) cell: Cell,
    /// Of the check of the model list: the ids.
    pub(crate) listed: Option<Vec<String>>,
}

/// Runs one check. Where it needs a model, there is one.
pub(crate) async fn run(context: &Context<'_>, id: CheckId, model: Option<&str>) -> Checked {
    let mut cell = Cell::new(id, model);
    let model = model.unwrap_or_default();
    let mut listed = None;
    match id {
        CheckId::ModelsEndpoint => listed = models_endpoint::check(context, &mut cell).await,
        CheckId::ModelAccess => model_access::check(context, &mut cell, model),
        CheckId::ResponsesText => responses_text::check(context, &mut cell, model).await,
        CheckId::ResponsesStream => responses_stream::check(context, &mut cell, model).await,
        CheckId::ResponsesFunctionTool => responses_function_tool::check(context, &mut cell, model).await,
        CheckId::AgentCliSmoke => agent_cli_smoke::check(context, &mut cell, model).await,
    }
    Checked { cell, listed }
}

/// The prompt of the text checks.
fn prompt(token: &str) -> String {
    format!("Reply with exactly this token and nothing else: {token}")
}

/// The headers that 2.12 lists.
static LISTED_HEADERS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the embedded schema is JSON");
    let headers = schema["$defs"]["response_headers"]["properties"].as_object();
    headers.expect("the schema lists headers").keys().cloned().collect()
});

/// Sends a request and asserts that the answer's head is as it should be; fills http_status, content_type,
/// response_headers and content_type_verified. Gives the answer if its status is 200, whatever else is wrong with it.
async fn exchange(
    context: &Context<'_>,
    cell: &mut Cell,
    path: &str,
    body: Option<&Value>,
    media_type: &'static str,
) -> Option<(Answer, Option<Failure>)> {
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
    if !cell.assert(Category::Protocol, "content encoding", "identity, as asked for", encoding, plain) {
        return None;
    }
    Some((answer, failure))
}

fn refuse_status(cell: &mut Cell, answer: &Answer) {
    let told = ErrorBody::read(&answer.body[..answer.body.len().min(ERROR_BODY_BYTES)]);
    let status = answer.status;
    let category =
        if (100..=599).contains(&status) { Category::of_status(status) } else { Category::Protocol };
    let failure = Failure::told(category, &format!("status {status}"), told);
    cell.fail("HTTP status", "200", status.to_string(), failure);
}

/// Asserts that the answer is a whole JSON document, and reads it.
async fn json_exchange(
    context: &Context<'_>,
    cell: &mut Cell,
    path: &str,
    body: Option<&Value>,
) -> Option<Value> {
    let (answer, failure) = exchange(context, cell, path, body, "application/json").await?;
    if let Some(failure) = failure {
        cell.fail("body", "complete", failure.message.clone(), failure);
        return None;
    }
    match serde_json::from_slice(&answer.body) {
        Ok(value) => {
            cell.assert(Category::Protocol, "body", "JSON", "JSON", true);
            Some(value)
        }
        Err(error) => {
            cell.assert(Category::Protocol, "body", "JSON", format!("none ({error})"), false);
            None
        }
    }
}
