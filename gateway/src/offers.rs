//! Which models the upstreams of a configuration offer. Operators compare them with what they configured, and test an upstream by
//! the first page of its list.

use std::fmt::Display;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use gatewright::catalog;
use gatewright_config::{Config, Kind, UpstreamConfig};
use gatewright_system::clock::millis;
use http_body_util::{BodyExt as _, Limited};
use serde::{Deserialize, Serialize};

use crate::upstream::Endpoint;

/// Timeout for an upstream's list.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of pages read from a list.
const MAX_PAGES: usize = 20;
/// Maximum size of all pages of a list, in bytes.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Timeout for the first page of a list, when an upstream is tested.
const TEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of that page, in bytes.
const MAX_TEST_BYTES: usize = 1024 * 1024;
/// Number of upstreams queried concurrently.
const AT_ONCE: usize = 16;
/// Maximum size of the reported part of an upstream's error, in bytes.
const MAX_MESSAGE_BYTES: usize = 300;

/// The models that an upstream offers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offer {
    /// Name of the upstream.
    pub upstream: String,
    /// Its names for its models, in its order. Errors: why they are unknown, for display.
    pub models: Result<Vec<String>, String>,
}

/// Queries all upstreams for their models, several concurrently, each with its first key. Needs a Tokio
/// runtime.
pub async fn offers(config: &Config) -> Vec<Offer> {
    let requests = config.upstreams.iter().map(|upstream| async {
        Offer { upstream: upstream.name.clone(), models: models_of(upstream).await }
    });
    stream::iter(requests).buffered(AT_ONCE).collect().await
}

async fn models_of(upstream: &UpstreamConfig) -> Result<Vec<String>, String> {
    if upstream.kind == Kind::Simulator {
        let text = catalog::TEXT_MODELS.iter().map(|model| model.id);
        let text = text.chain(catalog::EMBEDDING_MODELS.iter().map(|model| model.id));
        let text = text.chain(catalog::PLAIN_MODELS.iter().map(|model| model.id));
        let media = catalog::IMAGE_MODELS.iter().map(|model| model.id);
        let media = media.chain(catalog::VIDEO_MODELS.iter().map(|model| model.id));
        return Ok(text.chain(media).map(str::to_owned).collect());
    }
    if upstream.kind == Kind::Converse {
        return Err("servers of the kind converse list no models".to_owned());
    }
    let endpoint = Endpoint::new(upstream, None).map_err(|error| error.to_string())?;
    let listed = tokio::time::timeout(TIMEOUT, list(&endpoint)).await;
    listed.unwrap_or_else(|_| Err(format!("its list did not arrive within {} s", TIMEOUT.as_secs())))
}

/// What the test of an upstream found.
#[derive(Debug, Serialize)]
pub(crate) struct UpstreamTest {
    /// `untested`: its protocol has no list to ask for.
    status: &'static str,
    /// Until the list had arrived or failed.
    duration_ms: Option<u64>,
    /// Number of models on the first page of its list.
    models: Option<usize>,
    problem: Option<String>,
}

/// Requests the first page of an upstream's model list, at its configured address and with its first key.
pub(crate) async fn test(endpoint: &Endpoint) -> UpstreamTest {
    let untested = |problem: &str| UpstreamTest {
        status: "untested",
        duration_ms: None,
        models: None,
        problem: Some(problem.to_owned()),
    };
    match endpoint.kind {
        Kind::Simulator => return untested("it runs in this process"),
        Kind::Converse => return untested("servers of the kind converse list no models"),
        _ => {}
    }
    let started = Instant::now();
    let listed =
        tokio::time::timeout(TEST_TIMEOUT, page(endpoint, None, MAX_TEST_BYTES, MAX_TEST_BYTES)).await;
    let listed = listed
        .unwrap_or_else(|_| Err(format!("its list did not arrive within {} s", TEST_TIMEOUT.as_secs())));
    let duration_ms = Some(millis(started.elapsed()));
    match listed {
        Ok((page, _)) => {
            UpstreamTest { status: "ok", duration_ms, models: Some(page.names().count()), problem: None }
        }
        Err(problem) => UpstreamTest { status: "failed", duration_ms, models: None, problem: Some(problem) },
    }
}

async fn list(endpoint: &Endpoint) -> Result<Vec<String>, String> {
    let (mut models, mut after, mut room) = (Vec::new(), None, MAX_BYTES);
    for _ in 0..MAX_PAGES {
        let (page, size) = page(endpoint, after.as_deref(), room, MAX_BYTES).await?;
        room -= size;
        models.extend(page.names());
        after = page.next();
        if after.is_none() {
            return Ok(models);
        }
    }
    Err(format!("its list has more than {MAX_PAGES} pages"))
}

/// A page of a list, and its size in bytes. `after`: the cursor from the previous page; `room`: what is left of the maximum size
/// `most` of the list.
async fn page(
    endpoint: &Endpoint,
    after: Option<&str>,
    room: usize,
    most: usize,
) -> Result<(Page, usize), String> {
    let answer = endpoint.models(after).await.map_err(|why| why.to_string())?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, room).collect().await;
    let body = body.map_err(|_| format!("its list is cut off or larger than {most} bytes"))?.to_bytes();
    if !head.status.is_success() {
        return Err(refused(endpoint, head.status, &body));
    }
    let page = serde_json::from_slice(&body).map_err(|_| "its response is not a list of models")?;
    Ok((page, body.len()))
}

fn refused(endpoint: &Endpoint, status: impl Display + Into<u16> + Copy, body: &Bytes) -> String {
    let message = endpoint.kind.main_protocol().failure_in(status.into(), body).message;
    let (message, _) = endpoint.redactor.redact_beginning(&message, MAX_MESSAGE_BYTES);
    format!("it answered {status}: {message}")
}

/// A page of a list, in any of its formats.
#[derive(Debug, Deserialize)]
struct Page {
    /// All but native.
    #[serde(default)]
    data: Option<Vec<OfferedModel>>,
    /// Native.
    #[serde(default)]
    models: Option<Vec<OfferedModel>>,
    /// Messages: whether a page follows.
    #[serde(default)]
    has_more: Option<bool>,
    #[serde(default)]
    last_id: Option<String>,
    /// Native.
    #[serde(default, rename = "nextPageToken")]
    next_page_token: Option<String>,
}

#[derive(Debug, Deserialize)]
struct OfferedModel {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

impl Page {
    fn names(&self) -> impl Iterator<Item = String> {
        let native = |entry: &OfferedModel| {
            let name = entry.name.as_deref()?;
            Some(name.strip_prefix("models/").unwrap_or(name).to_owned())
        };
        // Some servers list their models under both names.
        let (data, models) = match &self.data {
            Some(data) => (data.as_slice(), &[][..]),
            None => (&[][..], self.models.as_deref().unwrap_or_default()),
        };
        data.iter().filter_map(|entry| entry.id.clone()).chain(models.iter().filter_map(native))
    }

    /// The cursor for the next page.
    fn next(self) -> Option<String> {
        let last = self.last_id.filter(|_| self.has_more == Some(true));
        last.or(self.next_page_token).filter(|next| !next.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(page: &str) -> (Vec<String>, Option<String>) {
        let page: Page = serde_json::from_str(page).expect("a page");
        (page.names().collect(), page.next())
    }

    #[test]
    fn model_lists_of_each_protocol_are_parsed() {
        let chat =
            r#"{"object":"list","data":[{"id":"a","name":"A model"},{"id":"b"}],"models":[{"name":"a"}]}"#;
        assert_eq!(read(chat), (vec!["a".to_owned(), "b".to_owned()], None));
        let messages = r#"{"data":[{"type":"model","id":"c"}],"has_more":true,"first_id":"c","last_id":"c"}"#;
        assert_eq!(read(messages), (vec!["c".to_owned()], Some("c".to_owned())));
        assert_eq!(read(&messages.replace("true", "false")).1, None);
        let native = r#"{"models":[{"name":"models/d","displayName":"D"}],"nextPageToken":"t"}"#;
        assert_eq!(read(native), (vec!["d".to_owned()], Some("t".to_owned())));
    }
}
