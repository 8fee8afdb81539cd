//! The way of a request from its head to its operation (`respond`), and of the response back (`answer`).

mod fault_injection;
mod strict;

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use futures_util::FutureExt as _;
use gatewright::operations::{self, ErrorStyle, Operation};
use gatewright::{ErrorCode, limits};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use percent_encoding::percent_decode_str;
use tokio::sync::oneshot;
use tracing::{Instrument as _, Span};

use self::fault_injection::{FaultInjection, without_faults};
use super::body::{discard_rest, no_room, read_body};
use super::client::Client;
#[cfg(feature = "console")]
use super::console;
use super::request_id::{new_request_id, sign};
use super::route_match::{Match, match_route, methods_of};
use super::{admin, operator, rate_headers};
use crate::access::{is_native, refused};
use crate::app::App;
use crate::fault::{FailedOnce, RequestFaults};
use crate::generated::routes::dispatch;
use crate::media::files;
use crate::model_scope;
use crate::models;
use crate::observe::{self, ContentRecord, Origin, Recent, RecentEntry};
use crate::relay;
use crate::storage::{
    GeneratedFiles, IdempotentRequest, KEY_HEADER, PREFIX, ReplayDecision, Replays, RunningRequest,
};
use crate::usage::{Caller, InFlight};
use crate::wire::{Abandoned, ApiError, Body, Call, FormBody, Response, hold};

/// Longer forms are read on the blocking pool, in bytes.
const LONG_FORM: usize = 64 * 1024;

/// Answers a request in every case, even after a panic.
pub(super) async fn answer(app: &Arc<App>, request: http::Request<Body>, client: Client) -> Response {
    let (started, present) = (Instant::now(), observe::GaugeGuard::new(&app.telemetry.metrics.in_flight));
    let request_id = new_request_id();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let mut state = RequestState::new(&path, started);
    let span = observe::span(&method, &path, client.is_tls, request.headers(), &request_id);
    let (head, mut body) = request.into_parts();
    let waits = head.headers.contains_key(header::EXPECT);
    let answering = respond(app, head, client, &mut body, &request_id, &mut state).instrument(span.clone());
    let answered = AssertUnwindSafe(answering).catch_unwind().await;
    let mut response = match answered {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => error.into_response(state.style),
        // The panic message went to standard error; it is not sent to the client.
        Err(_) => ApiError::new(&ErrorCode::SERVER_ERROR, "the gateway failed").into_response(state.style),
    };
    state.note(app, &mut response);
    sign(&mut response, &request_id, state.style);
    if !state.knows_upstream {
        response.headers_mut().remove(relay::UPSTREAM_HEADER);
    }
    if !discard_rest(&mut body, waits).await {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some(admitted) = state.admitted.take() {
        response = admitted.follow(response);
    }
    let RequestState { operation, shown, content, .. } = state;
    let id = request_id;
    let request =
        observe::LoggedRequest { started, present, method, path, id, operation, span, shown, content };
    observe::watch(&app.telemetry.metrics, request, response)
}

/// Data about a request, as far as it is known.
struct RequestState {
    started: Instant,
    style: ErrorStyle,
    operation: Option<&'static Operation>,
    admitted: Option<Admitted>,
    /// Its entry in the operators' list, if there is an admin key.
    shown: Option<RecentEntry>,
    /// Where its response is recorded, if that is kept.
    content: Option<ContentRecord>,
    /// Whether its key may know which upstream answered.
    knows_upstream: bool,
    /// The model in its path, if its key is valid.
    model: Option<String>,
    /// Empty until it has been read.
    body: Bytes,
}

impl RequestState {
    fn new(path: &str, started: Instant) -> Self {
        let (operation, admitted, shown, content, knows_upstream, model, body) = Default::default();
        let style = path_style(path);
        Self { started, style, operation, admitted, shown, content, knows_upstream, model, body }
    }

    fn found(&mut self, app: &App, operation: &'static Operation, request_id: &str) {
        (self.style, self.operation) = (operation.error_style, Some(operation));
        if app.access.authenticator.has_admin() {
            self.shown = Some(Recent::begin(&app.telemetry.recent, operation, request_id));
        }
    }

    fn authenticated(&mut self, caller: &Caller) {
        self.knows_upstream = caller.scopes().show_upstream;
        if let Some(shown) = &self.shown {
            shown.admitted(caller.id());
        }
    }

    /// Says for operators which model the request names, unless its operation has said so, and counts a failure.
    fn note(&self, app: &App, response: &mut Response) {
        let Some(operation) = self.operation else { return };
        let (is_named, failed) =
            (response.extensions().get::<Origin>().is_some(), is_failure(operation, response));
        if is_named && !failed {
            return;
        }
        let routes = app.live.routes.load();
        if let Some(name) = self.model_named(operation).filter(|_| !is_named) {
            let name = without_faults(&routes, &name);
            let known = routes.find(name).map(|route| Origin::sought(Arc::clone(&route.id)));
            response.extensions_mut().insert(known.unwrap_or_else(|| Origin::unknown(name)));
        }
        if let Some(Admitted { caller, .. }) = self.admitted.as_ref().filter(|_| failed) {
            let origin = response.extensions().get::<Origin>();
            let route = origin.and_then(|origin| routes.find(&origin.model));
            caller.failed(route.map(|route| &route.id), origin.and_then(Origin::upstream));
        }
    }

    fn model_named(&self, operation: &Operation) -> Option<Cow<'_, str>> {
        match &self.model {
            Some(model) => Some(model.into()),
            None if operation.models.is_some() => relay::model_in_body(operation, &self.body).map(Cow::Owned),
            None => None,
        }
    }
}

/// Whether a request for a model failed.
fn is_failure(operation: &Operation, response: &Response) -> bool {
    operation.models.is_some()
        && response.status().as_u16() >= 400
        && response.extensions().get::<Abandoned>().is_none()
}

/// A request that counts towards the limits of its key.
struct Admitted {
    caller: Caller,
    /// Its slot, if concurrent requests are limited.
    place: Option<InFlight>,
}

impl Admitted {
    /// Adds the remaining limits to the response, which holds the request's slot until it has been sent.
    fn follow(self, mut response: Response) -> Response {
        rate_headers::write(&self.caller, response.headers_mut());
        match self.place {
            Some(place) => hold(response, place),
            None => response,
        }
    }
}

/// The error style of a path without an operation.
fn path_style(path: &str) -> ErrorStyle {
    let is_below =
        |place: &str| path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    match () {
        () if path.starts_with("/v1beta") => ErrorStyle::Native,
        () if is_below("/v1/messages") => ErrorStyle::Messages,
        () => ErrorStyle::Standard,
    }
}

/// The way of a request. Each step returns an error, or what the next one needs. `state` collects what is known of the request,
/// for its error, its log line and its metrics.
async fn respond(
    app: &Arc<App>,
    mut head: Parts,
    client: Client,
    body: &mut Body,
    request_id: &str,
    state: &mut RequestState,
) -> Result<Response, ApiError> {
    // What is not an operation of the API.
    let mut query = read_query(head.uri.query());
    if let Some(name) = head.uri.path().strip_prefix(PREFIX) {
        return Box::pin(file(&app.storage.files, &head, name, &query)).await;
    }
    if admin::serves(&app.access, head.uri.path()) {
        return Box::pin(admin::answer(app, head, query, body)).await;
    }
    if let Some(answered) = operator::answer(app, &mut head) {
        return answered;
    }
    #[cfg(feature = "console")]
    if console::serves(&head) {
        return Box::pin(console::answer(app, head, body)).await;
    }

    // Find the operation.
    let path = native_alias(&head.method, head.uri.path(), &head.headers);
    if is_native(&head.headers) || path_style(&path) == ErrorStyle::Native {
        state.style = ErrorStyle::Native;
    }
    let (operation, parameters) = match find_operation(&head, &path)? {
        ControlFlow::Continue(found) => found,
        ControlFlow::Break(options) => return Ok(options),
    };
    state.found(app, operation, request_id);

    // Authenticate, and count against the limits of the key.
    app.access.authenticator.pass().await;
    let caller = app.access.authenticator.admit(operation, &mut head.headers, &mut query)?;
    state.authenticated(&caller);
    state.model = model_in_path(operation, &parameters);
    if is_limited(operation) {
        let admitted = state.admitted.insert(Admitted { caller: caller.clone(), place: None });
        admitted.place = caller.begin().await.map_err(|exceeded| refused(exceeded, &caller))?;
    }

    // Read the request.
    let path = decode_parameters(&parameters)?;
    check_parameters(operation, &query, &head.headers)?;
    let is_form = !operation.form.is_empty();
    let body = if operation.has_body {
        read_body(&app.config, app.share_of(&caller), &head.headers, is_form, body).await?
    } else {
        Bytes::new()
    };
    let (body, form) = if is_form {
        // Boxed, because few requests are forms, so the others need no space for this.
        let (body, form) = Box::pin(read_form(app, &caller, operation, &head.headers, body)).await?;
        (body, Some(Arc::new(form)))
    } else {
        (body, None)
    };
    state.body = body.clone();
    if state.shown.is_some() {
        state.content = app.telemetry.recent.keep(request_id, &body);
    }
    let mut call = Call {
        operation,
        path,
        query,
        headers: head.headers,
        body,
        form,
        caller,
        request_id: request_id.to_owned(),
        presence: client.presence,
        is_tls: client.is_tls,
        started: state.started,
        failed_at: OnceLock::new(),
        consumed: state.shown.as_ref().map(RecentEntry::consumed).unwrap_or_default(),
    };

    // Repeat its response, fail it on request, or run its operation. Faults come last, so that a stored response is intact.
    let replay = find_replay(&app.storage.replays, &call).await?;
    let faults = take_faults(app, &mut call)?;
    if let Some(response) = faults.before(operation, || is_new(&app.failed_once, &call)).await {
        return Ok(response);
    }
    let response = run(app, replay, call).await?;
    Ok(faults.distort(operation, response))
}

fn read_query(query: Option<&str>) -> Vec<(String, String)> {
    url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect()
}

/// Answers a request for a generated file (section 4).
async fn file(
    files: &GeneratedFiles,
    head: &Parts,
    name: &str,
    query: &[(String, String)],
) -> Result<Response, ApiError> {
    if head.method == Method::OPTIONS {
        return Ok(options(files::METHODS));
    }
    files::serve(files, &head.method, name, query, &head.headers).await
}

/// The operation of a request, with its path parameters as sent.
type FoundOperation<'p> = (&'static Operation, Vec<(&'static str, &'p str)>);

/// Finds the operation at a path. `Break`: the answer to `OPTIONS`. Errors: there is none, or not with this method.
fn find_operation<'p>(
    head: &Parts,
    path: &'p str,
) -> Result<ControlFlow<Response, FoundOperation<'p>>, ApiError> {
    // HEAD is allowed wherever GET is; the body is not sent.
    let method = if head.method == Method::HEAD { &Method::GET } else { &head.method };
    match match_route(method, path) {
        Match::Found { operation, path } => Ok(ControlFlow::Continue((operation, path))),
        Match::MethodNotAllowed(operations) => {
            let methods = methods(&operations);
            if head.method == Method::OPTIONS {
                return Ok(ControlFlow::Break(options(&methods)));
            }
            let message = format!("{} is not allowed for {}", head.method, head.uri.path());
            Err(ApiError::new(&ErrorCode::METHOD_NOT_ALLOWED, message).allow(&methods))
        }
        Match::NotFound => {
            let message = format!("there is no operation at {}", head.uri.path());
            Err(ApiError::new(&ErrorCode::NOT_FOUND, message))
        }
    }
}

/// Whether an operation counts towards the limits of its key. Requests about stored responses, files and batches involve the
/// upstream, too.
fn is_limited(operation: &Operation) -> bool {
    operation.models.is_some()
        || operation.resource.starts_with("responses")
        || operation.protocol == operations::Protocol::Batch
}

/// Whether the request has been answered before, or is now. It is compared as it was sent, with the faults that it asks for.
async fn find_replay(replays: &Arc<Replays>, call: &Call) -> Result<ReplayDecision, ApiError> {
    if !call.operation.has_body || !call.headers.contains_key(&KEY_HEADER) {
        return Ok(ReplayDecision::Unkeyed);
    }
    let request = IdempotentRequest {
        operation: call.operation,
        caller: call.caller.id(),
        path: &call.path,
        query: &call.query,
        body: &call.body,
        form: call.form.as_ref().map(|form| &form.bytes[..]),
    };
    // Boxed, because few requests have a key, so the others need no space for this.
    Box::pin(replays.begin(&call.headers, request)).await
}

/// Whether a fault has not failed the request yet.
fn is_new(failed_once: &FailedOnce, call: &Call) -> bool {
    let request = (call.operation.id, call.caller.id(), call.path.as_slice(), call.query.as_slice());
    failed_once.is_new(request, call.sent())
}

/// Reads a form, and its members as JSON.
async fn read_form(
    app: &App,
    caller: &Caller,
    operation: &'static Operation,
    headers: &HeaderMap,
    sent: Bytes,
) -> Result<(Bytes, FormBody), ApiError> {
    let mut media_types = headers.get_all(header::CONTENT_TYPE).iter();
    let media_type = media_types.next().cloned().unwrap_or(HeaderValue::from_static(""));
    if media_types.next().is_some() {
        let message = "the request has two content-types; send one";
        return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message));
    }
    let (mut share, is_long) = (app.share_of(caller), sent.len() > LONG_FORM);
    let read = move || {
        let (form, members) = FormBody::read(operation, media_type, sent)?;
        let body = Bytes::from(members.to_string());
        share.hold(body.len()).map_err(no_room)?;
        Ok((share.attach(body), form))
    };
    // Searching a long body takes milliseconds, which would delay other requests.
    if is_long { app.resources.blocking_pool.work(move |_| read()).await } else { read() }
}

/// Runs the operation, or repeats its response.
async fn run(app: &Arc<App>, replay: ReplayDecision, call: Call) -> Result<Response, ApiError> {
    match replay {
        ReplayDecision::Again(response) => Ok(response),
        // A video may cost money: its submission continues if the client disconnects, and a repeated one gets its
        // answer.
        ReplayDecision::First(turn) if call.operation.id == "create_video" => {
            run_detached(app, turn, call).await
        }
        ReplayDecision::First(turn) => {
            let response = dispatch(app, call).await;
            Ok(Box::pin(turn.answered(response, app.room_for_answers())).await)
        }
        ReplayDecision::Unkeyed => Ok(dispatch(app, call).await),
    }
}

/// Errors: the query or the headers break a rule of the operation.
fn check_parameters(
    operation: &Operation,
    query: &[(String, String)],
    headers: &HeaderMap,
) -> Result<(), ApiError> {
    let query = query.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut violations = limits::check_query(operation, query);
    if violations.is_empty() {
        violations =
            limits::check_headers(operation, headers.iter().map(|(name, value)| (name.as_str(), value)));
    }
    if violations.is_empty() { Ok(()) } else { Err(ApiError::violations(violations)) }
}

/// The faults of a request, which are removed from it. Errors: its key may not use the model; nothing here
/// supports faults; one of the faults rejects it.
fn take_faults(app: &App, call: &mut Call) -> Result<RequestFaults, ApiError> {
    let routes = app.live.routes.load();
    let injection = FaultInjection::take(&routes, call);
    // A key that may not use a model learns nothing about it, not even who provides it.
    model_scope::check(&routes, &call.caller, call.operation, &call.path, &call.body)?;
    let faults = injection.over(&app.config.faults, call.operation)?;
    faults.hide(&mut call.body);
    if faults.is_strict() {
        strict::check(call.operation, &call.body)?;
    }
    Ok(faults)
}

/// Runs an operation to its end, whether or not the client waits.
async fn run_detached(app: &Arc<App>, turn: RunningRequest, call: Call) -> Result<Response, ApiError> {
    let (done, answer) = oneshot::channel();
    let worker = Arc::clone(app);
    let work = async move {
        let response = dispatch(&worker, call).await;
        _ = done.send(turn.answered(response, worker.room_for_answers()).await);
    };
    app.task_runner.spawn(work.instrument(Span::current()));
    answer.await.map_err(|_| ApiError::new(&ErrorCode::SERVER_ERROR, "the gateway failed"))
}

/// The methods of a path, for people and programs that ask.
fn methods(operations: &[&Operation]) -> String {
    let mut methods = methods_of(operations);
    methods.push("OPTIONS");
    methods.join(", ")
}

/// Lists the methods of a path. Needs no key, since they are not secret.
fn options(methods: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    if let Ok(methods) = HeaderValue::try_from(methods) {
        response.headers_mut().insert(header::ALLOW, methods);
    }
    response
}

/// Clients of the native protocol also use /v1 (ours): its methods there, and its models when the key comes in the
/// native header.
fn native_alias(method: &Method, path: &str, headers: &HeaderMap) -> String {
    let native = match path.strip_prefix("/v1/models") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            is_native(headers) || (*method == Method::POST && rest.contains(':'))
        }
        _ => false,
    };
    if native { path.replacen("/v1/", "/v1beta/", 1) } else { path.to_owned() }
}

/// The model that a path names.
fn model_in_path(operation: &Operation, parameters: &[(&str, &str)]) -> Option<String> {
    let (_, raw) = parameters.iter().find(|(name, _)| *name == "model")?;
    let name = percent_decode_str(raw).decode_utf8_lossy();
    Some(models::id_of(operation, &name).to_owned())
}

/// Decodes path parameters once. A value that later code could take for another path is not found. A slash is allowed,
/// since model ids may contain one, and lookups treat it as any other character.
fn decode_parameters(parameters: &[(&str, &str)]) -> Result<Vec<(String, String)>, ApiError> {
    let decode = |&(name, raw): &(&str, &str)| {
        let value = percent_decode_str(raw).decode_utf8().ok().filter(|value| {
            !value.contains(['\\', '%'])
                && !value.contains("..")
                && !value.contains(char::is_control)
                && value.split('/').all(|segment| !matches!(segment, "" | "."))
        });
        match value {
            Some(value) => Ok((name.to_owned(), value.into_owned())),
            None => Err(ApiError::new(&ErrorCode::NOT_FOUND, format!("the {name} in the path is not valid"))
                .param(name)),
        }
    };
    parameters.iter().map(decode).collect()
}
