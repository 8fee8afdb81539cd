//! `/admin`: keys, usage, upstreams and the shared configuration, for operators with the admin key. Its routes are generated from
//! `spec/admin.yaml`, which has no operation without a method here.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use gatewright::operations::Operation;
use gatewright::redact::Redactor;
use gatewright::{ApiKey, ErrorCode};
use gatewright_store::{Rotation, UsageQuery};
use http::request::Parts;
use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::json;

use super::body::read_body;
use super::route_match::{Match, match_route_of, methods_of};
use super::shared_config;
use crate::access::RegistryError;
use crate::app::{Access, App};
use crate::generated::admin::routes::{ROUTES, Service, dispatch};
use crate::offers;
use crate::shared::Shared;
use crate::wire::{ApiError, Body, OperatorCall, Response, json_response};

/// First segment of these paths.
const PREFIX: &str = "/admin";

/// Whether a path belongs to the operator API.
pub(super) fn serves(access: &Access, path: &str) -> bool {
    let rest = path.strip_prefix(PREFIX);
    access.authenticator.has_admin() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers an operator's request.
pub(super) async fn answer(
    app: &Arc<App>,
    mut head: Parts,
    query: Vec<(String, String)>,
    body: &mut Body,
) -> Result<Response, ApiError> {
    app.access.authenticator.admit_admin(&mut head.headers)?;
    let path = head.uri.path();
    let method = if head.method == Method::HEAD { &Method::GET } else { &head.method };
    let not_found = || ApiError::new(&ErrorCode::NOT_FOUND, format!("there is no operation at {path}"));
    let (operation, parameters) = match match_route_of(ROUTES, method, path) {
        Match::Found { operation, path } => (operation, path),
        Match::MethodNotAllowed(operations) => {
            let message = format!("{} is not allowed for {path}", head.method);
            return Err(ApiError::new(&ErrorCode::METHOD_NOT_ALLOWED, message)
                .allow(&methods_of(&operations).join(", ")));
        }
        Match::NotFound => return Err(not_found()),
    };
    check_query(operation, &query)?;
    let decode = |(name, raw)| Ok((name, decoded(raw)?));
    let parameters = parameters.into_iter().map(decode).collect::<Result<_, ApiError>>()?;
    // Clients that want the defaults send no body and no content type.
    let body = if operation.has_body && !http_body::Body::is_end_stream(body) {
        read_body(&app.config, app.resources.memory.share(), &head.headers, false, body).await?
    } else {
        Bytes::new()
    };
    let call = OperatorCall { operation, path: parameters, query, body };
    dispatch(app, call).await.unwrap_or_else(|| Err(not_found()))
}

impl Service for Arc<App> {
    async fn list_keys(&self, mut call: OperatorCall) -> Result<Response, ApiError> {
        let revoked = match call.take_query("revoked").as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(invalid("revoked", "must be true or false")),
        };
        Ok(json_response(&json!({ "keys": self.access.registry.list(revoked).await? })))
    }

    async fn create_key(&self, call: OperatorCall) -> Result<Response, ApiError> {
        let issued = self.access.registry.create(call.document()?).await?;
        refresh(&self.access).await;
        Ok(created(&issued))
    }

    async fn retrieve_key(&self, call: OperatorCall) -> Result<Response, ApiError> {
        Ok(json_response(&self.access.registry.show(call.path("key")).await?))
    }

    async fn update_key(&self, call: OperatorCall) -> Result<Response, ApiError> {
        let key = self.access.registry.update(call.path("key"), call.document()?).await?;
        refresh(&self.access).await;
        Ok(json_response(&key))
    }

    async fn revoke_key(&self, call: OperatorCall) -> Result<Response, ApiError> {
        let key = self.access.registry.revoke(call.path("key")).await?;
        refresh(&self.access).await;
        Ok(json_response(&key))
    }

    async fn rotate_key(&self, call: OperatorCall) -> Result<Response, ApiError> {
        let rotation = if call.body.is_empty() { Rotation::default() } else { call.document()? };
        let issued = self.access.registry.rotate(call.path("key"), rotation).await?;
        refresh(&self.access).await;
        Ok(json_response(&issued))
    }

    async fn report_usage(&self, mut call: OperatorCall) -> Result<Response, ApiError> {
        let mut usage = UsageQuery::default();
        (usage.from, usage.to) = (call.take_query("from"), call.take_query("to"));
        (usage.key, usage.by) = (call.take_query("key"), call.take_query("by"));
        Ok(json_response(&json!({ "usage": self.access.registry.usage(usage).await? })))
    }

    async fn list_upstreams(&self, _call: OperatorCall) -> Result<Response, ApiError> {
        let routes = self.live.routes.load();
        let upstreams: Vec<_> = routes.health(Instant::now()).collect();
        Ok(json_response(&json!({ "upstreams": upstreams })))
    }

    async fn test_upstream(&self, call: OperatorCall) -> Result<Response, ApiError> {
        let name = call.path("name");
        let provider = self.live.routes.load().provider(name).map(Arc::clone);
        let provider = provider.ok_or_else(|| {
            let name = gatewright::limits::brief(format_args!("{name:?}"));
            ApiError::new(&ErrorCode::NOT_FOUND, format!("there is no upstream {name}"))
        })?;
        Ok(json_response(&offers::test(&provider.endpoint).await))
    }

    async fn list_requests(&self, _call: OperatorCall) -> Result<Response, ApiError> {
        Ok(json_response(&self.telemetry.recent.listed()))
    }

    async fn retrieve_request_content(&self, call: OperatorCall) -> Result<Response, ApiError> {
        let id = call.path("id");
        let content = self.telemetry.recent.content(id).ok_or_else(|| {
            let id = gatewright::limits::brief(format_args!("{id:?}"));
            let message = format!("no content of the request {id} is kept: see observe.content_requests");
            ApiError::new(&ErrorCode::NOT_FOUND, message)
        })?;
        let secrets = [&self.config.key, &self.config.admin_key].into_iter().flatten().map(ApiKey::expose);
        let own = Redactor::new(secrets);
        let routes = self.live.routes.load_full();
        // Texts are searched for the secrets of every upstream.
        let shown = self.resources.blocking_pool.work(move |_| {
            Ok(content.shown(|text| {
                routes.redactors().fold(own.redact(text), |text, redactor| redactor.redact(&text))
            }))
        });
        Ok(json_response(&shown.await?))
    }

    async fn list_nodes(&self, _call: OperatorCall) -> Result<Response, ApiError> {
        Ok(json_response(&json!({ "nodes": self.access.registry.nodes().await? })))
    }

    async fn retrieve_config(&self, mut call: OperatorCall) -> Result<Response, ApiError> {
        let revision = call.take_query("revision").map(|number| number.parse::<u64>()).transpose();
        let revision = revision.map_err(|_| invalid("revision", "must be a number"))?;
        Ok(json_response(&self.access.registry.config_document(revision).await?))
    }

    async fn push_config(&self, call: OperatorCall) -> Result<Response, ApiError> {
        let sharing = self.live.shared.as_ref().map(|shared| shared.sharing.clone());
        let pushed = self.access.registry.push_config_at(call.document()?, sharing).await?;
        shared_config::refresh(self).await;
        Ok(if pushed.new { created(&pushed) } else { json_response(&pushed) })
    }

    async fn list_config_revisions(&self, _call: OperatorCall) -> Result<Response, ApiError> {
        let shared = self.live.shared.as_ref();
        let refused = shared.and_then(Shared::refused);
        let refused =
            refused.map(|refused| json!({ "revision": refused.revision.number, "why": refused.why }));
        Ok(json_response(&json!({
            "revisions": self.access.registry.config_history().await?,
            "in_use": shared.and_then(Shared::number),
            "refused": refused,
        })))
    }

    async fn list_tasks(&self, mut call: OperatorCall) -> Result<Response, ApiError> {
        let status = call.take_query("status");
        Ok(json_response(&json!({ "tasks": self.access.registry.tasks(status.as_deref()).await? })))
    }

    async fn list_notifications(&self, mut call: OperatorCall) -> Result<Response, ApiError> {
        let status = call.take_query("status");
        Ok(json_response(
            &json!({ "webhooks": self.access.registry.notifications(status.as_deref()).await? }),
        ))
    }

    async fn redeliver_notification(&self, call: OperatorCall) -> Result<Response, ApiError> {
        let id = call.path("id");
        self.access.registry.redeliver(id).await?;
        self.webhooks.outbox.look();
        Ok(json_response(&json!({ "id": id, "status": "pending" })))
    }
}

fn created(document: &impl Serialize) -> Response {
    let mut response = json_response(document);
    *response.status_mut() = StatusCode::CREATED;
    response
}

/// Makes a change effective in this gateway before it is confirmed. If the store doesn't answer now, the change
/// takes effect when it does.
async fn refresh(access: &Access) {
    if let Err(error) = access.authenticator.refresh().await {
        tracing::warn!("{error}: a change to a key has not taken effect yet");
    }
}

fn invalid(member: &str, message: &str) -> ApiError {
    ApiError::new(&ErrorCode::INVALID_VALUE, format!("{member}: {message}")).param(member)
}

/// Errors: a parameter that the operation doesn't have, or one given twice. A misspelled filter must not return more than was
/// requested.
fn check_query(operation: &Operation, query: &[(String, String)]) -> Result<(), ApiError> {
    for (at, (name, _)) in query.iter().enumerate() {
        if !operation.query_parameters.contains(&name.as_str()) {
            let name = gatewright::limits::brief(format_args!("{name:?}"));
            return Err(ApiError::new(&ErrorCode::INVALID_VALUE, format!("unknown query parameter {name}")));
        }
        if query[..at].iter().any(|(earlier, _)| earlier == name) {
            return Err(invalid(name, "is given twice"));
        }
    }
    Ok(())
}

fn decoded(segment: &str) -> Result<String, ApiError> {
    let decoded = percent_decode_str(segment).decode_utf8().ok();
    let name = decoded.filter(|name| !name.is_empty() && !name.contains(char::is_control));
    name.map(Into::into).ok_or_else(|| ApiError::new(&ErrorCode::NOT_FOUND, "the path does not name a key"))
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
