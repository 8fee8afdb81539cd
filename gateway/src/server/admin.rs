//! `/admin`: keys, usage and upstreams, for operators with the admin key. Not part of the specification.
//!
//! | method and path | what it does |
//! |---|---|
//! | `GET /admin/keys` | lists the keys in use; `?revoked=true`: all |
//! | `POST /admin/keys` | makes a key |
//! | `GET /admin/keys/{id}` | shows a key |
//! | `DELETE /admin/keys/{id}` | revokes it |
//! | `POST /admin/keys/{id}/rotate` | gives it another secret |
//! | `GET /admin/usage` | reports usage; `?from=…&to=…&key=…&by=…` |
//! | `GET /admin/upstreams` | shows the upstreams as they are now |
//! | `GET /admin/requests` | shows the requests under way, and the newest that have ended |
//! | `GET /admin/nodes` | lists the gateways that share the store |
//! | `GET /admin/config` | shows the configuration that gateways share; `?revision=…`: an earlier one |
//! | `POST /admin/config` | makes another document, or an earlier revision, its newest revision |
//! | `GET /admin/config/history` | lists its revisions |
//! | `GET /admin/tasks` | lists video tasks; `?status=pending`, `processing`, `completed` or `failed` |
//! | `GET /admin/webhooks` | lists notifications; `?status=pending`, `delivered` or `dead` |
//! | `POST /admin/webhooks/{id}/redeliver` | has one delivered again |

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use bytes::Bytes;
use gatewright::ErrorCode;
use http::request::Parts;
use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::body::read_body;
use super::shared_config;
use crate::access::RegistryError;
use crate::app::App;
use crate::keys::{NewKey, Rotation};
use crate::shared::{ConfigPush, Shared};
use crate::usage::UsageQuery;
use crate::wire::{ApiError, Response, json_response};

/// First segment of these paths.
const PREFIX: &str = "/admin";

/// Whether a path belongs to the operator API.
pub(super) fn serves(app: &App, path: &str) -> bool {
    let rest = path.strip_prefix(PREFIX);
    app.authenticator.has_admin() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers an operator's request.
pub(super) async fn answer(
    app: &Arc<App>,
    mut head: Parts,
    mut query: Vec<(String, String)>,
    body: &mut Body,
) -> Result<Response, ApiError> {
    app.authenticator.admit_admin(&mut head.headers)?;
    let path = head.uri.path().to_owned();
    let segments: Vec<&str> = path.split('/').skip(2).collect();
    let method = if head.method == Method::HEAD { &Method::GET } else { &head.method };
    let registry = &app.registry;
    match (method, &*segments) {
        (&Method::GET, ["keys"]) => {
            let revoked = parameter(&mut query, "revoked")?;
            none_left(&query)?;
            let revoked = match revoked.as_deref() {
                None | Some("false") => false,
                Some("true") => true,
                Some(_) => return Err(invalid("revoked", "must be true or false")),
            };
            Ok(json_response(&json!({ "keys": registry.list(revoked).await? })))
        }
        (&Method::POST, ["keys"]) => {
            none_left(&query)?;
            let new: NewKey =
                document(&read_body(&app.config, app.memory.share(), &head.headers, body).await?)?;
            let issued = registry.create(new).await?;
            refresh(app).await;
            let mut response = json_response(&issued);
            *response.status_mut() = StatusCode::CREATED;
            Ok(response)
        }
        (&Method::GET, ["keys", name]) => {
            none_left(&query)?;
            Ok(json_response(&registry.show(&decoded(name)?).await?))
        }
        (&Method::DELETE, ["keys", name]) => {
            none_left(&query)?;
            let key = registry.revoke(&decoded(name)?).await?;
            refresh(app).await;
            Ok(json_response(&key))
        }
        (&Method::POST, ["keys", name, "rotate"]) => {
            none_left(&query)?;
            let rotation = rotation(app, &head, body).await?;
            let issued = registry.rotate(&decoded(name)?, rotation).await?;
            refresh(app).await;
            Ok(json_response(&issued))
        }
        (&Method::GET, ["usage"]) => {
            let mut parameter = |name| parameter(&mut query, name);
            let mut usage = UsageQuery::default();
            (usage.from, usage.to) = (parameter("from")?, parameter("to")?);
            (usage.key, usage.by) = (parameter("key")?, parameter("by")?);
            none_left(&query)?;
            Ok(json_response(&json!({ "usage": registry.usage(usage).await? })))
        }
        (&Method::GET, ["upstreams"]) => {
            none_left(&query)?;
            let routes = app.routes.load();
            let upstreams: Vec<_> = routes.health(Instant::now()).collect();
            Ok(json_response(&json!({ "upstreams": upstreams })))
        }
        (&Method::GET, ["requests"]) => {
            none_left(&query)?;
            Ok(json_response(&app.recent.listed()))
        }
        (&Method::GET, ["nodes"]) => {
            none_left(&query)?;
            Ok(json_response(&json!({ "nodes": registry.nodes().await? })))
        }
        (&Method::GET, ["config"] | ["config", "history"]) | (&Method::POST, ["config"]) => {
            config(app, method, &segments, &head, query, body).await
        }
        (&Method::GET, ["tasks"]) => {
            let status = parameter(&mut query, "status")?;
            none_left(&query)?;
            Ok(json_response(&json!({ "tasks": registry.tasks(status.as_deref()).await? })))
        }
        (&Method::GET, ["webhooks"]) => {
            let status = parameter(&mut query, "status")?;
            none_left(&query)?;
            Ok(json_response(&json!({ "webhooks": registry.notifications(status.as_deref()).await? })))
        }
        (&Method::POST, ["webhooks", id, "redeliver"]) => {
            none_left(&query)?;
            let id = decoded(id)?;
            registry.redeliver(&id).await?;
            app.outbox.look();
            Ok(json_response(&json!({ "id": id, "status": "pending" })))
        }
        (
            _,
            ["keys" | "usage" | "upstreams" | "requests" | "nodes" | "tasks" | "webhooks" | "config"]
            | ["config", "history"]
            | ["keys", _]
            | ["keys", _, "rotate"]
            | ["webhooks", _, "redeliver"],
        ) => {
            let message = format!("{} is not allowed for {path}", head.method);
            Err(ApiError::new(&ErrorCode::METHOD_NOT_ALLOWED, message).allow(methods(&segments)))
        }
        _ => Err(ApiError::new(&ErrorCode::NOT_FOUND, format!("there is no operation at {path}"))),
    }
}

/// The configuration that gateways share.
async fn config(
    app: &Arc<App>,
    method: &Method,
    segments: &[&str],
    head: &Parts,
    mut query: Vec<(String, String)>,
    body: &mut Body,
) -> Result<Response, ApiError> {
    let (registry, shared) = (&app.registry, app.shared.as_ref());
    if method == Method::POST {
        none_left(&query)?;
        let push: ConfigPush =
            document(&read_body(&app.config, app.memory.share(), &head.headers, body).await?)?;
        let pushed = registry.push_config_at(push, shared.map(|shared| shared.sharing.clone())).await?;
        shared_config::refresh(app).await;
        let mut response = json_response(&pushed);
        if pushed.new {
            *response.status_mut() = StatusCode::CREATED;
        }
        return Ok(response);
    }
    if segments.len() > 1 {
        none_left(&query)?;
        let refused = shared.and_then(Shared::refused);
        let refused =
            refused.map(|refused| json!({ "revision": refused.revision.number, "why": refused.why }));
        return Ok(json_response(&json!({
            "revisions": registry.config_history().await?,
            "in_use": shared.and_then(Shared::number),
            "refused": refused,
        })));
    }
    let revision = parameter(&mut query, "revision")?;
    none_left(&query)?;
    let revision = revision.map(|number| number.parse::<u64>()).transpose();
    let revision = revision.map_err(|_| invalid("revision", "must be a number"))?;
    Ok(json_response(&registry.config_document(revision).await?))
}

fn methods(segments: &[&str]) -> &'static str {
    match segments {
        ["keys" | "config"] => "GET, HEAD, POST",
        ["keys", _] => "GET, HEAD, DELETE",
        ["keys" | "webhooks", _, ..] => "POST",
        _ => "GET, HEAD",
    }
}

/// Makes a change effective in this gateway before it is confirmed. If the store doesn't answer now, the change
/// takes effect when it does.
async fn refresh(app: &App) {
    if let Err(error) = app.authenticator.refresh().await {
        tracing::warn!("{error}: a change to a key has not taken effect yet");
    }
}

fn invalid(member: &str, message: &str) -> ApiError {
    ApiError::new(&ErrorCode::INVALID_VALUE, format!("{member}: {message}")).param(member)
}

/// Takes a parameter from the query.
fn parameter(query: &mut Vec<(String, String)>, name: &str) -> Result<Option<String>, ApiError> {
    let Some(at) = query.iter().position(|(found, _)| found == name) else { return Ok(None) };
    let (_, value) = query.remove(at);
    if query.iter().any(|(found, _)| found == name) {
        return Err(invalid(name, "is given twice"));
    }
    Ok(Some(value))
}

/// Errors: there are unread parameters. A misspelled filter must not return more than was requested.
fn none_left(query: &[(String, String)]) -> Result<(), ApiError> {
    match query.first() {
        None => Ok(()),
        Some((name, _)) => {
            let name = gatewright::limits::brief(format_args!("{name:?}"));
            Err(ApiError::new(&ErrorCode::INVALID_VALUE, format!("unknown query parameter {name}")))
        }
    }
}

fn decoded(segment: &str) -> Result<String, ApiError> {
    let decoded = percent_decode_str(segment).decode_utf8().ok();
    let name = decoded.filter(|name| !name.is_empty() && !name.contains(char::is_control));
    name.map(Into::into).ok_or_else(|| ApiError::new(&ErrorCode::NOT_FOUND, "the path does not name a key"))
}

/// Clients that want the defaults send no body and no content type.
async fn rotation(app: &App, head: &Parts, body: &mut Body) -> Result<Rotation, ApiError> {
    if http_body::Body::is_end_stream(body) {
        return Ok(Rotation::default());
    }
    document(&read_body(&app.config, app.memory.share(), &head.headers, body).await?)
}

fn document<T: DeserializeOwned>(body: &Bytes) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| {
        let (code, what) = if error.is_data() {
            (&ErrorCode::INVALID_VALUE, "not valid")
        } else {
            (&ErrorCode::INVALID_JSON, "not one JSON document")
        };
        ApiError::new(code, format!("the body is {what}: {error}"))
    })
}

impl From<RegistryError> for ApiError {
    fn from(error: RegistryError) -> Self {
        let message = error.to_string();
        match error {
            RegistryError::Invalid(invalid) => {
                Self::new(&ErrorCode::INVALID_VALUE, message).param(invalid.member)
            }
            RegistryError::NameTaken(_) => Self::new(&ErrorCode::INVALID_VALUE, message).param("name"),
            RegistryError::NotFound(_) | RegistryError::NoNotification(_) | RegistryError::NoRevision(_) => {
                Self::new(&ErrorCode::NOT_FOUND, message)
            }
            RegistryError::InvalidConfig(_) => {
                Self::new(&ErrorCode::INVALID_VALUE, message).param("document")
            }
            RegistryError::ConfigChanged { .. } => {
                Self::new(&ErrorCode::INVALID_VALUE, message).param("after")
            }
            RegistryError::Full => Self::new(&ErrorCode::INVALID_VALUE, message),
            RegistryError::Data(_) | RegistryError::Store(_) => {
                // The message is the database's, and of no use to the client.
                tracing::warn!("{message}");
                Self::new(&ErrorCode::SERVER_IS_OVERLOADED, "the store does not respond; try again soon")
                    .retry_after(1)
            }
        }
    }
}
