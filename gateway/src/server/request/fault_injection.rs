//! The faults that a request asks for, in its header or after its model's name. Only the simulator supports them: a request
//! never changes what another provider answers.

use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright::operations::Operation;
use gatewright_config::{FAULT_HEADER, Faults, InvalidFault};
use http::HeaderValue;
use memchr::{memchr, memmem};

use crate::fault::RequestFaults;
use crate::models;
use crate::routing::Routes;
use crate::wire::{ApiError, Call};
use gatewright_protocol::lazy_json::{self, members, spliced};

/// Separates a model from its faults.
const SEPARATOR: u8 = b'~';
/// Maximum length of a model id with faults, in bytes.
const MAX_FAULT_HEADER_BYTES: usize = 4096;
/// Maximum number of separators in it that are tried: a fault's value may contain some.
const MAX_SEPARATORS: usize = 64;

/// The faults requested.
#[derive(Debug, Default)]
pub(super) struct FaultInjection {
    in_header: Option<HeaderValue>,
    after_model: Option<String>,
    answers: Responder,
}

/// The provider that answers the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Responder {
    Simulator,
    /// Another provider, at least for requests that the simulator doesn't answer.
    Another,
    /// It names no existing model: its operation reports that.
    #[default]
    Nobody,
}

impl FaultInjection {
    /// Removes the faults from a request, so that the rest of the gateway sees a plain one.
    pub(super) fn take(routes: &Routes, call: &mut Call) -> Self {
        let Call { operation, headers, path, body, .. } = call;
        let in_header = headers.remove(FAULT_HEADER);
        let in_path = path.iter_mut().find(|(name, _)| name == "model").map(|(_, model)| model);
        let names_model = operation.models.is_some() || in_path.is_some();
        let named = match in_path {
            Some(model) => Some(take_from_path(routes, operation, model)),
            None if operation.models.is_some() && (in_header.is_some() || may_ask(body)) => {
                take_from_body(routes, body)
            }
            None => None,
        };
        let (model, after_model) = named.map_or((None, None), |(model, faults)| (Some(model), faults));
        let of_model = |name: &String| routes.find(name).map(|route| route.is_embedded());
        let is_simulated = match &model {
            _ if in_header.is_none() && after_model.is_none() => return Self::default(),
            None if !names_model => Some(routes.all().all(|route| route.is_embedded())),
            model => model.as_ref().and_then(of_model),
        };
        let answers = match is_simulated {
            Some(true) => Responder::Simulator,
            Some(false) => Responder::Another,
            None => Responder::Nobody,
        };
        Self { in_header, after_model, answers }
    }

    /// The faults of the response: these in addition to the configured ones.
    ///
    /// Errors: the faults are invalid; the simulator doesn't answer this request.
    pub(super) fn over(self, configured: &Faults, operation: &Operation) -> Result<RequestFaults, ApiError> {
        let in_header = self.in_header.as_ref().map(|value| (value.to_str().unwrap_or("?"), FAULT_HEADER));
        let after_model = self.after_model.as_deref().map(|faults| (faults, "model"));
        let mut faults = configured.clone();
        for (text, param) in in_header.into_iter().chain(after_model) {
            match self.answers {
                Responder::Simulator => faults.extend(read(text, param)?),
                Responder::Another => return Err(not_simulated(param)),
                Responder::Nobody => {}
            }
        }
        Ok(RequestFaults::new(faults, operation))
    }
}

fn read(text: &str, param: &str) -> Result<Faults, ApiError> {
    text.parse().map_err(|error: InvalidFault| {
        ApiError::new(&ErrorCode::INVALID_VALUE, error.to_string()).param(param)
    })
}

fn not_simulated(param: &str) -> ApiError {
    let message =
        "only the simulator supports this header: use a model that has only the simulator as its target";
    ApiError::new(&ErrorCode::INVALID_VALUE, message).param(param)
}

/// The model and the faults of a path; the faults are removed from it.
fn take_from_path(routes: &Routes, operation: &Operation, model: &mut String) -> (String, Option<String>) {
    let name = models::id_of(operation, model);
    let Some(at) = separator(routes, name) else { return (name.to_owned(), None) };
    let (name, faults) = (name[..at].to_owned(), name[at + 1..].to_owned());
    model.truncate(model.len() - faults.len() - 1);
    (name, Some(faults))
}

/// The same for a body. None if it names no model.
fn take_from_body(routes: &Routes, body: &mut Bytes) -> Option<(String, Option<String>)> {
    let text = std::str::from_utf8(body).ok()?;
    let mut found = None;
    // If the member is repeated, the last one counts, as in the operation.
    members(text, |name, value| {
        if name == "model" {
            found = Some(value);
        }
    })
    .ok()?;
    let (value, place) = found.map(|value| (value, lazy_json::place(text, value)))?;
    let mut name = lazy_json::string(value)?.into_owned();
    let Some(at) = separator(routes, &name) else { return Some((name, None)) };
    let faults = name.split_off(at)[1..].to_owned();
    let plain = serde_json::Value::from(name.as_str()).to_string();
    *body = spliced(body, &[(place, plain.as_bytes())]);
    Some((name, Some(faults)))
}

/// The name of a model without its faults.
pub(super) fn without_faults<'n>(routes: &Routes, name: &'n str) -> &'n str {
    separator(routes, name).map_or(name, |at| &name[..at])
}

/// Where the faults of a model's name begin. None if a model has this very name; of several models, the longer
/// name wins.
fn separator(routes: &Routes, name: &str) -> Option<usize> {
    if name.len() > MAX_FAULT_HEADER_BYTES || routes.find(name).is_some() {
        return None;
    }
    let mut places = name.rmatch_indices(char::from(SEPARATOR)).map(|(at, _)| at).take(MAX_SEPARATORS);
    places.find(|at| routes.find(&name[..*at]).is_some())
}

/// Whether there is a separator in what may be the model of a body, so that most bodies need not be parsed. It may be
/// elsewhere, in the prompt.
fn may_ask(body: &[u8]) -> bool {
    if memchr(SEPARATOR, body).is_none() {
        return false;
    }
    memmem::find_iter(body, b"\"model\"").any(|at| {
        let rest = body[at + b"\"model\"".len()..].trim_ascii_start();
        let value = rest.strip_prefix(b":").map(<[u8]>::trim_ascii_start);
        let Some(value) = value.and_then(|value| value.strip_prefix(b"\"")) else { return false };
        let value = &value[..value.len().min(MAX_FAULT_HEADER_BYTES)];
        let end = memchr(b'"', value).unwrap_or(value.len());
        memchr(SEPARATOR, &value[..end]).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_is_parsed_only_if_its_model_may_have_faults() {
        for body in [r#"{"model":"a~b"}"#, "{\"model\" :\n \"~\"}", r#"{"x":{"model":"a~b"}}"#] {
            assert!(may_ask(body.as_bytes()), "{body}");
        }
        let longest = format!(r#"{{"model":"{}~"}}"#, "a".repeat(MAX_FAULT_HEADER_BYTES));
        for body in [
            r#"{"model":"a","input":"~"}"#,
            r#"{"input":"\"model\":\"a~b\""}"#,
            r#"{"model":1,"x":"~"}"#,
            r#"{"~":1,"model""#,
            r#"{"~":1,"model":"#,
            longest.as_str(),
        ] {
            assert!(!may_ask(body.as_bytes()), "{body}");
        }
    }
}
