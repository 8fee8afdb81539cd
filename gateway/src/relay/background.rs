//! Usage of background responses: the upstream answers before the usage is known. The charge stays open, and the gateway polls
//! the upstream until the response has ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gatewright_protocol::conversation::Protocol;
use http::HeaderMap;
use serde::Deserialize;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::document::{self, Patience};
use crate::app::App;
use crate::routing::Provider;
use crate::upstream::{StoredAction, StoredResponseRequest};
use crate::usage::{Caller, Charge, FollowedResponse};
use gatewright_protocol::inspect::StreamInspector;

/// Maximum length of a response's id, in bytes: it becomes part of a path.
const MAX_ID_BYTES: usize = 256;
/// Maximum time to follow a response. After that, the usage is estimated.
const MAX_TIME: Duration = Duration::from_hours(1);
/// First pause between two polls; each one is longer than the last.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause between two polls.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// How often a pause checks whether the gateway is stopping.
const TICK: Duration = Duration::from_secs(1);

/// The part of a response that tells its state.
#[derive(Deserialize)]
struct BackgroundState {
    id: String,
    status: String,
}

impl BackgroundState {
    fn is_under_way(&self) -> bool {
        matches!(&*self.status, "queued" | "in_progress")
    }
}

/// The id of a response in progress. `None`: it has ended, or isn't a response.
pub(super) fn id_under_way(document: &[u8]) -> Option<String> {
    let state: BackgroundState = serde_json::from_slice(document).ok()?;
    (state.is_under_way() && state.id.len() <= MAX_ID_BYTES).then_some(state.id)
}

/// A response that an upstream generates in the background.
pub(super) struct BackgroundResponse {
    pub(super) provider: Arc<Provider>,
    /// The mark of the key used to create it.
    pub(super) key: Option<i64>,
    pub(super) id: String,
    /// The client's name for the model.
    pub(super) model: Arc<str>,
    pub(super) caller: Caller,
}

impl BackgroundResponse {
    /// Keeps the charge open until the usage is known or can only be estimated.
    pub(super) fn follow(self, app: &Arc<App>, mut charge: Charge) {
        // A stream may also be dropped because the runtime ends.
        if Handle::try_current().is_err() {
            return;
        }
        let followed = app.access.followed.follow(&self.id, self.caller.id(), app.percent_of_key());
        let Some(followed) = followed else { return };
        let worker = Arc::clone(app);
        app.task_runner.spawn(async move {
            self.wait(&worker, &mut charge, &followed).await;
            // The usage is recorded before a request that waits for it deletes the response.
            drop(charge);
            drop(followed);
        });
    }

    async fn wait(&self, app: &App, charge: &mut Charge, followed: &FollowedResponse) {
        let (started, mut pause) = (Instant::now(), FIRST_PAUSE);
        while started.elapsed() < MAX_TIME {
            let until = Instant::now() + pause;
            while Instant::now() < until {
                if app.draining.load(Ordering::Relaxed) {
                    return;
                }
                let tick = tokio::time::sleep(TICK.min(until - Instant::now()));
                tokio::select! {
                    () = tick => {}
                    () = followed.wanted() => break,
                }
            }
            pause = pause.mul_f64(1.5).min(MAX_PAUSE);
            if self.has_ended(app, charge).await {
                return;
            }
            followed.polled();
        }
    }

    /// Polls the upstream. True: there is nothing more to learn.
    async fn has_ended(&self, app: &App, charge: &mut Charge) -> bool {
        let endpoint = &self.provider.endpoint;
        let (headers, request_id) = (HeaderMap::new(), uuid::Uuid::new_v4().to_string());
        let about = StoredResponseRequest {
            action: StoredAction::Retrieve,
            response: &self.id,
            query: &[],
            client: &headers,
            id: &request_id,
        };
        let Ok(answer) = endpoint.ask_about(about, self.key).await else { return false };
        let (head, body) = answer.into_parts();
        if !head.status.is_success() {
            // A response deleted by the client isn't found.
            return head.status.is_client_error() && head.status.as_u16() != 429;
        }
        let mut share = app.share_of(&self.caller);
        let Ok(body) = super::attempt::without_codings(&head.headers, body, &endpoint.redactor) else {
            return true;
        };
        let reading =
            document::read(body, document::MAX_BYTES, Patience::of(endpoint), &endpoint.redactor, &mut share);
        let Ok(document) = reading.await else { return false };
        if id_under_way(&document).is_some() {
            return false;
        }
        let mut inspector = StreamInspector::new(Protocol::Responses, &self.model, false);
        if document::passed(&document, &mut inspector, &endpoint.redactor, &mut share).is_ok()
            && let Some(usage) = inspector.usage
        {
            charge.set_usage(usage);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_id_is_read_only_while_under_way() {
        let id = |status: &str| {
            id_under_way(format!(r#"{{"id":"resp_1","status":"{status}","output":[]}}"#).as_bytes())
        };
        assert_eq!(id("queued").as_deref(), Some("resp_1"));
        assert_eq!(id("in_progress").as_deref(), Some("resp_1"));
        for status in ["completed", "failed", "incomplete", "cancelled"] {
            assert_eq!(id(status), None, "{status}");
        }
        assert_eq!(id_under_way(b"[]"), None);
        let long = format!(r#"{{"id":"{}","status":"queued"}}"#, "r".repeat(MAX_ID_BYTES + 1));
        assert_eq!(id_under_way(long.as_bytes()), None);
    }
}
