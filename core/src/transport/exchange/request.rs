//! Turns a call into a request that is ready to be sent: address, body, headers, checks.

use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::{ResponseMode, Transport, body};
use crate::api::operation::{Method, Operation, ResponseBody, StreamMode, TextForm};
use crate::transport::generated::options::RequestOptions;
use crate::transport::idempotency::new_key;
use crate::transport::options::Call;
use crate::transport::outgoing::Outgoing;
use crate::wire::error::{Error, ErrorKind};
use crate::wire::{limits, multipart};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Headers that define how the message is framed; callers must not set them.
const FRAMING_HEADERS: &[&str] =
    &["connection", "content-length", "host", "te", "transfer-encoding", "upgrade"];

impl Transport {
    pub(super) fn build(
        &self,
        call: Call,
        mode: ResponseMode,
        options: &RequestOptions,
    ) -> Result<Outgoing, Error> {
        let Call { operation, path, query, body, files, is_object, .. } = call;
        let mut url = self.base.join(operation, &path)?;
        for (name, value) in &joined(operation, query) {
            if !operation.query_parameters.contains(&name.as_str()) {
                let message = format!("unknown query parameter {name:?}; extra_query takes any");
                return Err(Error::new(ErrorKind::InvalidRequest, message));
            }
            url.query_pairs_mut().append_pair(name, value);
        }
        let mut request = Outgoing::new(operation.method.into(), url);
        match (operation.has_body, body) {
            (true, Some(body)) => request.body = Some(body),
            (false, None) => {}
            (true, None) => return Err(Error::new(ErrorKind::InvalidRequest, "the operation needs a body")),
            (false, Some(_)) => {
                return Err(Error::new(ErrorKind::InvalidRequest, "the operation takes no body"));
            }
        }
        let names = multipart::file_names(operation, &files)?;
        if !names.is_empty() {
            edit_body(&mut request, |body| body::with_members(body, &names))?;
        }
        self.prepare(&mut request, operation, is_object, mode, options)?;
        if !operation.form.is_empty()
            && let Some(body) = &request.body
        {
            let form = multipart::encode(operation, body, &files)?;
            request.headers.insert(CONTENT_TYPE, form.content_type);
            request.body = Some(form.body);
        }
        Ok(request)
    }

    /// Prepares a request: checks that its body is within the limits, and sets everything that all requests carry.
    /// is_object: whether the body is certainly one JSON object.
    fn prepare(
        &self,
        request: &mut Outgoing,
        operation: &Operation,
        is_object: bool,
        mode: ResponseMode,
        options: &RequestOptions,
    ) -> Result<(), Error> {
        let invalid = |message: String| Error::new(ErrorKind::InvalidRequest, message);
        match (mode, operation.stream) {
            (ResponseMode::Stream, StreamMode::Never) => {
                return Err(invalid("the operation does not stream".to_owned()));
            }
            (ResponseMode::Document, StreamMode::Always) => {
                return Err(invalid("the operation answers only with a stream: open one".to_owned()));
            }
            _ => {}
        }
        if let Some(extra) = &options.extra_body {
            check_switch(operation, mode, extra)?;
            edit_body(request, |body| body::with_members(body, extra))?;
        }
        match operation.stream {
            StreamMode::Never | StreamMode::Always => {}
            StreamMode::Parameter(name) => {
                let streams = mode == ResponseMode::Stream;
                edit_body(request, |body| body::with_switch(body, is_object, name, streams))?;
            }
            StreamMode::Word(name, word) if mode == ResponseMode::Stream => {
                let member = Map::from_iter([(name.to_owned(), Value::from(word))]);
                edit_body(request, |body| body::with_members(body, &member))?;
            }
            StreamMode::Word(name, word) => check_word(request, operation, name, word)?,
        }
        check_text_form(request, operation, mode)?;
        if options.validate.unwrap_or(self.settings.validate) {
            check_limits(request, operation)?;
        }
        for (name, value) in operation.fixed_query {
            if !request.url.query_pairs().any(|(present, _)| present == *name) {
                request.url.query_pairs_mut().append_pair(name, value);
            }
        }
        for (name, value) in &options.extra_query {
            request.url.query_pairs_mut().append_pair(name, value);
        }
        let has_body = request.body.is_some();
        let headers = &mut request.headers;
        // A key provider is called when the request is made.
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        headers.insert(USER_AGENT, self.user_agent.clone());
        let accept = match mode {
            ResponseMode::Document => operation.response.media_type(),
            ResponseMode::Stream => "text/event-stream, application/json",
        };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if mode == ResponseMode::Stream {
            // A compressing proxy tends to buffer events until its buffer is full.
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        if has_body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if operation.method == Method::Post {
            headers.insert(IDEMPOTENCY_KEY, idempotency_key(options)?);
        }
        set_extra_headers(headers, &options.extra_headers)?;
        if options.validate.unwrap_or(self.settings.validate) && !operation.header_parameters.is_empty() {
            let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
            refuse(limits::check_headers(operation, headers))?;
        }
        Ok(())
    }
}

/// Query parameters as they are sent: the items of a list that is one value, joined.
fn joined(operation: &Operation, query: Vec<(String, String)>) -> Vec<(String, String)> {
    if operation.joined_query.is_empty() {
        return query;
    }
    let mut sent: Vec<(String, String)> = Vec::with_capacity(query.len());
    for (name, value) in query {
        let is_joined = operation.joined_query.contains(&name.as_str());
        match sent.iter_mut().find(|(known, _)| is_joined && *known == name) {
            Some((_, list)) => {
                list.push(',');
                list.push_str(&value);
            }
            None => sent.push((name, value)),
        }
    }
    sent
}

/// The way of calling decides whether a response streams: its method has the types for the one or the other.
fn check_switch(operation: &Operation, mode: ResponseMode, extra: &Map<String, Value>) -> Result<(), Error> {
    let Some((name, on)) = operation.stream.switch() else { return Ok(()) };
    let fits = |value: &Value| match operation.stream {
        // Any other word is an answer that comes whole.
        StreamMode::Word(..) => (*value == on) == (mode == ResponseMode::Stream),
        _ => *value == Value::Bool(mode == ResponseMode::Stream),
    };
    if extra.get(name).is_none_or(fits) {
        return Ok(());
    }
    let (method, resource) = (operation.qualified_name(), operation.resource);
    let message = match mode {
        ResponseMode::Document => format!(
            "extra_body cannot set {name:?} of a call for a whole response; to stream, give {name} to {method} \
             itself (in Rust, call {resource}.stream)"
        ),
        ResponseMode::Stream => format!(
            "extra_body cannot set {name:?} of a call for a stream; for a whole response, call {method} without \
             {name}"
        ),
    };
    Err(Error::new(ErrorKind::InvalidRequest, message))
}

/// A body that asks for a stream by a word. Errors: `InvalidRequest`, in a call for a whole response.
fn check_word(request: &Outgoing, operation: &Operation, name: &str, word: &str) -> Result<(), Error> {
    let body = request.body.as_deref().unwrap_or_default();
    if !body::has_word(body, name, &[word]) {
        return Ok(());
    }
    let message = format!(
        "{name} {word:?} asks for a stream: call {}.stream, or leave {name} out for a whole response",
        operation.resource
    );
    Err(Error::new(ErrorKind::InvalidRequest, message))
}

/// Whether a body asks for text in place of JSON.
pub(crate) fn asks_for_text(form: TextForm, body: &[u8]) -> bool {
    body::has_word(body, form.parameter, form.values)
}

/// A body that asks for text in place of JSON, or the other way round. Errors: `InvalidRequest`, in a call for the other one.
fn check_text_form(request: &Outgoing, operation: &Operation, mode: ResponseMode) -> Result<(), Error> {
    let Some(form) = operation.text_form.filter(|_| mode == ResponseMode::Document) else { return Ok(()) };
    let asked = asks_for_text(form, request.body.as_deref().unwrap_or_default());
    let TextForm { parameter, values, .. } = form;
    let (method, words) = (operation.qualified_name(), values.join(", "));
    let message = match (asked, matches!(operation.response, ResponseBody::Text(_))) {
        (true, false) => format!(
            "with this {parameter}, the answer is text: give {parameter} to {method} itself (in Rust, call {method}_text)"
        ),
        (false, true) => format!(
            "the answer to {method}_text is text: set {parameter} to one of {words}, or call {method}"
        ),
        _ => return Ok(()),
    };
    Err(Error::new(ErrorKind::InvalidRequest, message))
}

pub(super) fn is_framing(name: &HeaderName) -> bool {
    FRAMING_HEADERS.contains(&name.as_str())
}

fn edit_body(
    request: &mut Outgoing,
    edit: impl FnOnce(&[u8]) -> Result<Option<Vec<u8>>, Error>,
) -> Result<(), Error> {
    if let Some(body) = request.body.as_deref()
        && let Some(edited) = edit(body)?
    {
        request.body = Some(edited.into());
    }
    Ok(())
}

/// The caller's key, or a new one for this call.
fn idempotency_key(options: &RequestOptions) -> Result<HeaderValue, Error> {
    let Some(key) = &options.idempotency_key else {
        return Ok(HeaderValue::try_from(new_key()).expect("hexadecimal digits and dashes"));
    };
    HeaderValue::try_from(key).ok().filter(|key| !key.is_empty()).ok_or_else(|| {
        Error::new(ErrorKind::InvalidRequest, "the idempotency key is empty or cannot be sent as a header")
    })
}

/// Checks headers that every call carries. Errors: Configuration.
pub(crate) fn check_default_headers(headers: &[(String, String)]) -> Result<(), Error> {
    set_extra_headers(&mut HeaderMap::new(), headers)
        .map_err(|error| Error::new(ErrorKind::Configuration, error.message()))
}

fn set_extra_headers(headers: &mut HeaderMap, extra: &[(String, String)]) -> Result<(), Error> {
    for (name, value) in extra {
        // The value may be a secret, so the message contains only the name.
        let refuse =
            |why: &str| Error::new(ErrorKind::InvalidRequest, format!("extra header {name:?} {why}"));
        let parsed = HeaderName::try_from(name).map_err(|_| refuse("is not a valid header name"))?;
        if is_framing(&parsed) {
            return Err(refuse("may only be set by the transport"));
        }
        let value = HeaderValue::try_from(value).map_err(|_| refuse("has a value that cannot be sent"))?;
        headers.insert(parsed, value);
    }
    Ok(())
}

fn check_limits(request: &Outgoing, operation: &Operation) -> Result<(), Error> {
    refuse(limits::check_query(operation, request.url.query_pairs()))?;
    let Some(body) = request.body.as_deref() else { return Ok(()) };
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        Error::new(ErrorKind::InvalidRequest, format!("the body is not JSON: {error}")).with_source(error)
    })?;
    if !limits::is_catalogued(&value) {
        return Ok(());
    }
    // An internal gateway may send webhooks to internal hosts: its operator decides whether it does.
    let rules = limits::Rules::default().private_webhooks(!limits::may_be_public(&request.url));
    refuse(limits::check_with(operation, &value, rules))
}

fn refuse(violations: limits::Violations) -> Result<(), Error> {
    if violations.is_empty() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidRequest, violations.to_string()).with_violations(violations.into_vec()))
}
