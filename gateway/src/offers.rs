//! Which models the upstreams of a configuration offer. Operators compare them with what they configured, and test an upstream by
//! the first page of its list.

use std::fmt::{self, Display};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use gatewright::catalog;
use gatewright::visible::visible;
use gatewright_config::{Config, Kind, ModelKind, UpstreamConfig};
use gatewright_system::clock::millis;
use http_body_util::{BodyExt as _, Limited};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::model_kinds::kind_of;
use crate::upstream::{Endpoint, PageStart};

/// Timeout for an upstream's list.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of pages read from a list.
const MAX_PAGES: usize = 20;
/// Maximum size of all pages of a list, in bytes.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of models in a list.
const MAX_MODELS: usize = 10_000;
/// Timeout for the first page of a list, when an upstream is tested.
const TEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of that page, in bytes.
const MAX_TEST_BYTES: usize = 1024 * 1024;
/// Number of upstreams queried concurrently.
const AT_ONCE: usize = 16;
/// Maximum size of the reported part of an upstream's error, in bytes.
const MAX_MESSAGE_BYTES: usize = 300;
/// Maximum size of what a page says about where the next one begins, in bytes.
const MAX_START_BYTES: usize = 2048;

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
    let models = listed(upstream, TIMEOUT).await?;
    Ok(models.into_iter().map(|model| model.name).collect())
}

/// A model in the list of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedModel {
    /// The upstream's name for it.
    pub(crate) name: String,
    /// What it makes. `None`: nothing that the gateway serves.
    pub(crate) kind: Option<ModelKind>,
}

/// The list of an upstream that has one, in its order. Errors: why there is none, for display on a line.
pub(crate) async fn listed(upstream: &UpstreamConfig, timeout: Duration) -> Result<Vec<ListedModel>, String> {
    let endpoint = Endpoint::new(upstream, None).map_err(|error| error.to_string())?;
    let listed = tokio::time::timeout(timeout, list(&endpoint)).await;
    listed.unwrap_or_else(|_| Err(format!("its list did not arrive within {} s", timeout.as_secs())))
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
            UpstreamTest { status: "ok", duration_ms, models: Some(page.models.len()), problem: None }
        }
        Err(problem) => UpstreamTest { status: "failed", duration_ms, models: None, problem: Some(problem) },
    }
}

async fn list(endpoint: &Endpoint) -> Result<Vec<ListedModel>, String> {
    let (mut models, mut start, mut room) = (Vec::new(), None, MAX_BYTES);
    for _ in 0..MAX_PAGES {
        let (page, size) = page(endpoint, start.as_ref(), room, MAX_BYTES).await?;
        room -= size;
        models.extend(page.models);
        if models.len() > MAX_MODELS {
            return Err(format!("its list has more than {MAX_MODELS} models"));
        }
        start = page.next;
        if start.is_none() {
            return Ok(models);
        }
    }
    Err(format!("its list has more than {MAX_PAGES} pages"))
}

/// A page of a list, and its size in bytes. `start`: according to the previous page; `room`: what is left of the maximum size
/// `most` of the list.
async fn page(
    endpoint: &Endpoint,
    start: Option<&PageStart>,
    room: usize,
    most: usize,
) -> Result<(Page, usize), String> {
    let answer = endpoint.models(start).await.map_err(|why| why.to_string())?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, room).collect().await;
    let body = body.map_err(|_| format!("its list is cut off or larger than {most} bytes"))?.to_bytes();
    if !head.status.is_success() {
        return Err(refused(endpoint, head.status, &body));
    }
    let mut page = Page::read(&body).ok_or("its response is not a list of models")?;
    let has_cursor = endpoint.kind.main_protocol().binding().model_list.cursor.is_some();
    page.next = page.next.filter(|next| has_cursor || matches!(next, PageStart::Query(_)));
    Ok((page, body.len()))
}

fn refused(endpoint: &Endpoint, status: impl Display + Into<u16> + Copy, body: &Bytes) -> String {
    let message = endpoint.kind.main_protocol().failure_in(status.into(), body).message;
    let (message, _) = endpoint.redactor.redact_beginning(&message, MAX_MESSAGE_BYTES);
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("it answered {status}: {}", visible(&message))
}

/// A page of a list.
#[derive(Debug)]
struct Page {
    models: Vec<ListedModel>,
    /// Where the next page begins.
    next: Option<PageStart>,
}

/// A page in any of its formats. Each member may have any type.
#[derive(Debug, Deserialize)]
struct PageDocument<'a> {
    /// All but native.
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    /// Native.
    #[serde(borrow, default)]
    models: Option<&'a RawValue>,
    /// Messages: whether a page follows.
    #[serde(borrow, default)]
    has_more: Option<&'a RawValue>,
    #[serde(borrow, default)]
    last_id: Option<&'a RawValue>,
    /// Native.
    #[serde(borrow, default, rename = "nextPageToken")]
    next_page_token: Option<&'a RawValue>,
    /// OpenRouter.
    #[serde(borrow, default)]
    links: Option<&'a RawValue>,
}

/// The addresses of other pages.
#[derive(Debug, Deserialize)]
struct Links {
    #[serde(default)]
    next: Option<String>,
}

/// The name of a model in a list.
#[derive(Debug, Deserialize)]
struct ListEntry<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
}

impl Page {
    /// `None`: it is no list.
    fn read(body: &[u8]) -> Option<Self> {
        let is_bare = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
        if is_bare {
            // Together AI.
            let Entries(models) = serde_json::from_slice(body).ok()?;
            return Some(Self { models, next: None });
        }
        let document: PageDocument<'_> = serde_json::from_slice(body).ok()?;
        // Some servers list their models under both names.
        let models = match document.data.or(document.models) {
            Some(list) => serde_json::from_str::<Entries>(list.get()).ok()?.0,
            None => Vec::new(),
        };
        let has_more = document.has_more.is_some_and(|has_more| has_more.get() == "true");
        let last = document.last_id.and_then(text).filter(|_| has_more);
        let cursor = last.or_else(|| document.next_page_token.and_then(text));
        let next = cursor.filter(|cursor| !cursor.is_empty()).map(PageStart::Cursor);
        let next = next.or_else(|| {
            let links: Links = serde_json::from_str(document.links?.get()).ok()?;
            let address = links.next?;
            let (_, query) = address.split_once('?')?;
            Some(PageStart::Query(query.to_owned()))
        });
        let is_short = |next: &PageStart| {
            let (PageStart::Cursor(text) | PageStart::Query(text)) = next;
            text.len() <= MAX_START_BYTES
        };
        Some(Self { models, next: next.filter(is_short) })
    }
}

impl ListedModel {
    /// `None`: it has no name.
    fn read(entry: &RawValue) -> Option<Self> {
        let ListEntry { id, name } = serde_json::from_str(entry.get()).ok()?;
        let name = if let Some(id) = id.and_then(text) {
            id
        } else {
            // Native.
            let name = name.and_then(text)?;
            name.strip_prefix("models/").unwrap_or(&name).to_owned()
        };
        // A description that can't be read hides no model.
        let description = serde_json::from_str(entry.get()).unwrap_or_default();
        let kind = kind_of(&name, &description);
        Some(Self { name, kind })
    }
}

fn text(member: &RawValue) -> Option<String> {
    serde_json::from_str(member.get()).ok()
}

/// The models of a page, one more than the maximum at most. What isn't a model is skipped.
struct Entries(Vec<ListedModel>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of models")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Entries, A::Error> {
        let mut models = Vec::new();
        while let Some(entry) = entries.next_element::<&RawValue>()? {
            if models.len() <= MAX_MODELS {
                models.extend(ListedModel::read(entry));
            }
        }
        Ok(Entries(models))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(page: &str) -> (Vec<String>, Option<PageStart>) {
        let page = Page::read(page.as_bytes()).expect("a page");
        (page.models.into_iter().map(|model| model.name).collect(), page.next)
    }

    fn cursor(text: &str) -> PageStart {
        PageStart::Cursor(text.to_owned())
    }

    #[test]
    fn model_lists_of_each_protocol_are_parsed() {
        let chat =
            r#"{"object":"list","data":[{"id":"a","name":"A model"},{"id":"b"}],"models":[{"name":"a"}]}"#;
        assert_eq!(read(chat), (vec!["a".to_owned(), "b".to_owned()], None));
        let messages = r#"{"data":[{"type":"model","id":"c"}],"has_more":true,"first_id":"c","last_id":"c"}"#;
        assert_eq!(read(messages), (vec!["c".to_owned()], Some(cursor("c"))));
        assert_eq!(read(&messages.replace("true", "false")).1, None);
        let native = r#"{"models":[{"name":"models/d","displayName":"D"}],"nextPageToken":"t"}"#;
        assert_eq!(read(native), (vec!["d".to_owned()], Some(cursor("t"))));
        let bare = " [{\"id\":\"e\",\"type\":\"chat\"}]";
        assert_eq!(read(bare), (vec!["e".to_owned()], None));
        let linked =
            r#"{"data":[{"id":"f"}],"links":{"next":"https://elsewhere.example/m?offset=500&limit=500"}}"#;
        let next = PageStart::Query("offset=500&limit=500".to_owned());
        assert_eq!(read(linked), (vec!["f".to_owned()], Some(next)));
        assert_eq!(read("{}"), (Vec::new(), None));
    }

    #[test]
    fn members_of_an_unknown_form_do_not_hide_the_models() {
        let page = r#"{"object":7,"data":[{"id":"a","name":{"en":"A"},"type":[]},null,3,"b",{"id":4},{"id":"c"}],"has_more":"yes",
            "last_id":[1],"nextPageToken":{},"links":["next"]}"#;
        assert_eq!(read(page), (vec!["a".to_owned(), "c".to_owned()], None));
        let null = r#"{"data":null,"models":[{"name":"d"}],"links":null}"#;
        assert_eq!(read(null), (vec!["d".to_owned()], None));
        for page in ["", "7", "null", "\"a\"", "{\"data\":{}}", "[{]", "{\"data\":[{\"id\":\"a\"}"] {
            assert!(Page::read(page.as_bytes()).is_none(), "{page}");
        }
    }

    #[test]
    fn page_is_bounded_in_models_and_in_where_the_next_one_begins() {
        let page = format!("[{}]", vec![r#"{"id":"m"}"#; MAX_MODELS + 5].join(","));
        assert_eq!(read(&page).0.len(), MAX_MODELS + 1);
        let page = format!(r#"{{"models":[],"nextPageToken":"{}"}}"#, "t".repeat(MAX_START_BYTES + 1));
        assert_eq!(read(&page).1, None);
    }
}
