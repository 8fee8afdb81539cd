//! The console: the page that browsers get, and its requests besides the operations. Not part of the
//! specification.
//!
//! | method and path | what it answers |
//! |---|---|
//! | `GET /`, if the client accepts `text/html` | the page |
//! | `GET /console/assets/{name}` | scripts, style sheets and data of the page |
//! | `GET /console/session` | the permissions of the request's key, and the models |
//! | `POST /console/sign-in` | the keys, for a one-time code in place of a key |
//! | `POST /console/report` | the page of a report, of additional checks, or of two reports that are compared |
//!
//! The page contains no key and needs none; its requests do, in a header only. So a request that another site makes a
//! browser send has no permissions.

mod rendering;

use bytes::Bytes;
use gatewright::redact::Redactor;
use gatewright::{ErrorCode, catalog};
use gatewright_config::{ModelKind, TargetConfig, TokenPrice};
use gatewright_console::File;
use gatewright_simulator::MAX_ANSWER_TOKENS;
use gatewright_store::{ADMIN_KEY, Scopes};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::{Value, json};

use self::rendering::{RenderRequest, rendered};
use super::body::read_body;
use crate::access::{ApiKey, Principal};
use crate::app::App;
use crate::bounds::memory_budget::ReservationError;
use crate::models;
use crate::models::text_protocols;
use crate::relay::AttemptFailure;
use crate::routing::ModelRoute;
use crate::sign_in::SignIn;
use crate::wire::{ApiError, Body, Response, held_json, json_response};

/// Path of the page's files and requests.
const PREFIX: &str = "/console/";
/// The permissions of the page: it may only load its own files and send requests to its own gateway. `style-src` also
/// allows the style of a report's page, which is shown in a frame without scripts and inherits this policy.
const POLICY: &str = concat!(
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; ",
    "media-src 'self'; frame-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; ",
    "require-trusted-types-for 'script'; trusted-types 'none'; style-src 'self' "
);
/// Methods for the page and its files.
const READ: &str = "GET, HEAD, OPTIONS";

/// Whether the console answers a request.
pub(super) fn serves(head: &Parts) -> bool {
    let path = head.uri.path();
    path.starts_with(PREFIX) || (path == "/" && is_read(&head.method) && is_browser(&head.headers))
}

/// Answers a request for the page or from it.
pub(super) async fn answer(app: &App, mut head: Parts, body: &mut Body) -> Result<Response, ApiError> {
    let path = head.uri.path().to_owned();
    let allowed = match path.strip_prefix(PREFIX) {
        None => return Ok(page(&head)),
        Some("report") if head.method == Method::POST => {
            return report(app, head, body).await;
        }
        Some("session") if is_read(&head.method) => {
            app.access.authenticator.pass().await;
            return session(app, &mut head.headers);
        }
        Some("session") => READ,
        Some("sign-in") if head.method == Method::POST => return sign_in(&app.sign_in, &head.headers),
        Some("report" | "sign-in") => "POST, OPTIONS",
        Some(name) => match gatewright_console::file(name).filter(|_| name.starts_with("assets/")) {
            Some(file) if is_read(&head.method) => return Ok(asset(file, &head.headers)),
            Some(_) => READ,
            None => {
                return Err(ApiError::new(&ErrorCode::NOT_FOUND, format!("there is no page at {path}")));
            }
        },
    };
    let message = format!("{} is not allowed for {path}", head.method);
    Err(ApiError::new(&ErrorCode::METHOD_NOT_ALLOWED, message).allow(allowed))
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Whether the client would display a page. API clients accept JSON or anything.
fn is_browser(headers: &HeaderMap) -> bool {
    accepts(headers, header::ACCEPT, "text/html")
}

/// Whether a header lists something that the client accepts, with a nonzero weight.
fn accepts(headers: &HeaderMap, name: HeaderName, what: &str) -> bool {
    let values = headers.get_all(name);
    let listed = values.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    listed.map(|item| item.split(';').map(str::trim)).any(|mut item| {
        item.next().is_some_and(|named| named.eq_ignore_ascii_case(what))
            && !item.any(|parameter| {
                let weight = parameter.strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
                weight.is_some_and(|weight| weight <= 0.0)
            })
    })
}

fn page(head: &Parts) -> Response {
    let mut response = file(gatewright_console::page(), &head.headers);
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("accept"));
    // The page refers to its files by hash, so browsers must not use an outdated page.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    let policy = format!("{POLICY}{}", gatewright::report::PAGE_STYLE);
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, HeaderValue::try_from(policy).expect("a policy is ASCII")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
        (
            HeaderName::from_static("permissions-policy"),
            HeaderValue::from_static("camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
        ),
    ] {
        headers.insert(name, value);
    }
    response
}

/// A file that never changes under its name.
fn asset(asset: &File, headers: &HeaderMap) -> Response {
    let mut response = file(asset, headers);
    let headers = response.headers_mut();
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    headers.insert(header::CACHE_CONTROL, forever);
    let same = HeaderValue::from_static("same-origin");
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), same);
    response
}

fn file(file: &File, headers: &HeaderMap) -> Response {
    let compressed = accepts(headers, header::ACCEPT_ENCODING, "gzip");
    let content = if compressed { Bytes::from_static(file.gzip) } else { Bytes::from_static(file.plain()) };
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.kind));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if compressed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// The permissions of a request's key.
fn session(app: &App, headers: &mut HeaderMap) -> Result<Response, ApiError> {
    let principal = app.access.authenticator.admit_any(headers)?;
    let (role, key, scopes) = match &principal {
        Principal::Admin => ("admin", json!(ADMIN_KEY), None),
        Principal::Client(caller) => ("client", json!(&**caller.id()), Some(caller.scopes())),
    };
    let routes = app.live.routes.load();
    let all = Scopes::all();
    let scopes = scopes.unwrap_or(&all);
    let allowed = routes.all().flat_map(|route| models::names(route, scopes).map(move |name| (route, name)));
    let models: Vec<Value> = allowed.map(|(route, name)| described(route, name, scopes)).collect();
    let mut response = json_response(&json!({
        "role": role,
        "key": key,
        "admin": app.access.authenticator.has_admin(),
        "lasting": app.storage.lasting,
        "version": env!("CARGO_PKG_VERSION"),
        "currency": app.config.currency,
        "models": models,
    }));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The keys for a one-time code.
fn sign_in(sign_in: &SignIn, headers: &HeaderMap) -> Result<Response, ApiError> {
    let header = headers.get(header::AUTHORIZATION).map_or(&b""[..], HeaderValue::as_bytes);
    let code = header.strip_prefix(b"Bearer ").unwrap_or_default();
    let keys = sign_in.exchange(code).ok_or_else(|| {
        let message =
            "the code to sign in with is wrong, was used already, or has expired: sign in with a key";
        ApiError::new(&ErrorCode::INVALID_API_KEY, message)
    })?;
    let mut response = json_response(&json!({
        "client": keys.client.expose(),
        "admin": keys.admin.as_ref().map(ApiKey::expose),
    }));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// A model with the limits on requests to it, under one of the names by which the key may call it.
fn described(route: &ModelRoute, name: &str, scopes: &Scopes) -> Value {
    let model = &route.model;
    // The id covers all of them.
    let is_own = scopes.allow_model(&route.id);
    let aliases: &[String] = if is_own { &model.aliases } else { &[] };
    let limits = model.limits.as_deref().unwrap_or(&model.id);
    let (kind, protocols, limits) = match model.kind {
        ModelKind::Text => {
            let longest = route.is_embedded().then_some(MAX_ANSWER_TOKENS);
            // The least of its upstreams: a request may go to any of them.
            let least =
                |limit: fn(&TargetConfig) -> Option<u64>| model.targets.iter().filter_map(limit).min();
            let longest = least(|target| target.max_output).or(longest.map(|longest| longest as u64));
            let context = least(|target| target.context);
            (
                "text",
                text_protocols(route),
                json!({ "max_output_tokens": longest, "context_tokens": context }),
            )
        }
        ModelKind::Embedding => ("embedding", vec!["embeddings"], embedding_limits(limits)),
        ModelKind::Rerank => ("rerank", vec!["rerank"], Value::Null),
        ModelKind::Moderation => ("moderation", vec!["moderations"], Value::Null),
        ModelKind::Speech => ("speech", vec!["speech"], Value::Null),
        ModelKind::Transcription => ("transcription", vec!["transcriptions", "translations"], Value::Null),
        ModelKind::Image => ("image", vec!["images"], image_limits(limits)),
        ModelKind::Video => ("video", vec!["videos"], video_limits(limits)),
    };
    json!({
        "id": name,
        "aliases": aliases,
        "kind": kind,
        "family": &model.family,
        "protocols": protocols,
        "simulated": route.is_embedded(),
        "limits": limits,
        "price": price(&model.targets),
    })
}

/// The price of a model. Null: it is unknown, or depends on the upstream that answers.
fn price(targets: &[TargetConfig]) -> Value {
    let Some(price) = targets.first().and_then(|target| target.price.as_ref()) else { return Value::Null };
    if targets.iter().any(|target| target.price.as_ref() != Some(price)) {
        return Value::Null;
    }
    let tokens = |price: &TokenPrice| {
        json!({
            "input": price.input,
            "output": price.output,
            "cached_input": price.cached_input,
            "cache_write": price.cache_write,
            "reasoning": price.reasoning,
        })
    };
    let tiers = price.tiers.iter().map(|tier| json!({ "above": tier.above, "tokens": tokens(&tier.tokens) }));
    json!({
        "tokens": tokens(&price.tokens),
        "tiers": tiers.collect::<Vec<_>>(),
        "image": price.image,
        "video_second": price.video_second,
        "audio_second": price.audio_second,
        "speech_characters": price.speech_characters,
    })
}

fn embedding_limits(id: &str) -> Value {
    let model = catalog::EMBEDDING_MODELS.iter().find(|model| model.id == id);
    model.map_or(Value::Null, |model| json!({ "dimensions": model.dimensions }))
}

fn image_limits(id: &str) -> Value {
    let Some(model) = catalog::IMAGE_MODELS.iter().find(|model| model.id == id) else { return Value::Null };
    json!({
        "sizes": model.sizes,
        "max_resolution": model.max_resolution,
        "max_n": model.max_n,
        "max_prompt_characters": model.max_prompt_characters,
        "quality": model.quality,
        "style": model.style,
        "features": model.features,
    })
}

fn video_limits(id: &str) -> Value {
    let Some(model) = catalog::VIDEO_MODELS.iter().find(|model| model.id == id) else { return Value::Null };
    json!({
        "min_duration_s": model.min_duration_s,
        "max_duration_s": model.max_duration_s,
        "resolutions": model.resolutions,
        "aspect_ratios": model.aspect_ratios,
        "features": model.features,
    })
}

/// How much more memory than its bytes a report needs while it is rendered: markup takes four bytes for a byte of text, and exists as
/// a page and as JSON.
const RENDERING_FACTOR: usize = 12;

/// The page of a report, or of two reports compared.
async fn report(app: &App, mut head: Parts, body: &mut Body) -> Result<Response, ApiError> {
    app.access.authenticator.pass().await;
    let principal = app.access.authenticator.admit_any(&mut head.headers)?;
    let mut share = match &principal {
        Principal::Admin => app.resources.memory.share(),
        Principal::Client(caller) => app.share_of(caller),
    };
    let bytes = read_body(&app.config, share.sibling(), &head.headers, false, body).await?;
    let render_request: RenderRequest = serde_json::from_slice(&bytes).map_err(|error| {
        let code = if error.is_data() { &ErrorCode::INVALID_VALUE } else { &ErrorCode::INVALID_JSON };
        ApiError::new(code, format!("the body is invalid: {error}"))
    })?;
    // Until the page exists: its documents, their objects, the page, and the page as JSON.
    share.hold(RENDERING_FACTOR * bytes.len()).map_err(no_room)?;
    drop(bytes);
    // Limited for all clients together, since no key's limits count them. Not while the body arrives: a slow client would occupy a
    // slot.
    let turn = app.resources.renderings.acquire().await.expect("it is never closed");
    let answer =
        app.resources.blocking_pool.work(move |_| Ok(Bytes::from(rendered(&render_request)))).await?;
    drop(turn);
    share.hold(answer.len()).map_err(no_room)?;
    Ok(held_json(answer, share))
}

fn no_room(why: ReservationError) -> ApiError {
    AttemptFailure::no_room(why, &Redactor::default()).into_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn page_requires_text_html_in_accept() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        assert!(is_browser(&headers(header::ACCEPT, browser)));
        for other in ["*/*", "application/json", "text/*", "text/html;q=0", "text/html; q=0.0"] {
            assert!(!is_browser(&headers(header::ACCEPT, other)), "{other}");
        }
        assert!(!is_browser(&HeaderMap::new()));
    }

    #[test]
    fn content_security_policy_forbids_inline_script_and_style() {
        let policy = format!("{POLICY}{}", gatewright::report::PAGE_STYLE);
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(!policy.contains("http"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    }
}
