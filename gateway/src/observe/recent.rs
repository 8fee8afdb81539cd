//! Requests in progress and the most recently finished ones, as shown to operators: operation, key, model and upstream,
//! duration and outcome, tokens and cost. No path or query; content only if the configuration asks for it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gatewright::operations::Operation;
use gatewright_store::amount;
use gatewright_system::clock::{millis, unix_millis};
use serde::{Serialize, Serializer};

use super::content::{Content, ContentRecord, RecentContents};
use super::origin::Origin;
use crate::usage::Consumed;

/// Maximum number of finished requests.
const MAX_ENDED: usize = 500;
/// Maximum number of requests in progress that are listed, newest first; the rest are only counted.
const MAX_LISTED: usize = 500;

/// See the module. There are at most as many requests in progress as connections.
#[derive(Debug)]
pub(crate) struct Recent {
    log: Mutex<RequestLog>,
    contents: Arc<RecentContents>,
}

/// Keeps no content.
impl Default for Recent {
    fn default() -> Self {
        Self::new(0, Duration::ZERO)
    }
}

#[derive(Debug, Default)]
struct RequestLog {
    next: u64,
    under_way: BTreeMap<u64, RecentRequest>,
    /// Oldest first.
    ended: VecDeque<RecentRequest>,
}

/// A request as shown to operators.
#[derive(Debug, Clone, Serialize)]
struct RecentRequest {
    id: String,
    operation: &'static str,
    /// The id of its key; `None`: it had no valid key.
    #[serde(serialize_with = "word")]
    key: Option<Arc<str>>,
    #[serde(serialize_with = "word")]
    model: Option<Arc<str>>,
    #[serde(serialize_with = "word")]
    upstream: Option<Arc<str>>,
    /// Milliseconds since 1970.
    started: u64,
    status: Option<u16>,
    /// The gateway's code, if it sent an error.
    error: Option<&'static str>,
    /// From the request head to the response head.
    first_byte_ms: Option<u64>,
    /// Until the end of the response, or until now.
    duration_ms: u64,
    bytes: u64,
    outcome: Option<&'static str>,
    /// Whether its content is kept.
    content: bool,
    #[serde(flatten, serialize_with = "usage")]
    consumed: Consumed,
    #[serde(skip)]
    since: Instant,
}

/// What a request consumed. All are `None` while that is unknown, and if no upstream answered.
#[derive(Debug, Default, Serialize)]
struct RecentUsage {
    input_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    output_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
    /// In the operator's currency; `None`: it has no price.
    cost: Option<f64>,
    /// Whether any of it is an estimate.
    estimated: Option<bool>,
}

fn usage<S: Serializer>(consumed: &Consumed, serializer: S) -> Result<S::Ok, S::Error> {
    let usage = consumed.get().map(|totals| RecentUsage {
        input_tokens: Some(totals.input),
        cached_tokens: Some(totals.cached),
        output_tokens: Some(totals.output),
        reasoning_tokens: Some(totals.reasoning),
        cost: (totals.unpriced == 0).then(|| amount(totals.cost)),
        estimated: Some(totals.estimated > 0),
    });
    usage.unwrap_or_default().serialize(serializer)
}

#[expect(clippy::ref_option, reason = "as serde calls it")]
fn word<S: Serializer>(word: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    word.as_deref().serialize(serializer)
}

/// The requests shown to operators, newest first.
#[derive(Debug, Serialize)]
pub(crate) struct RecentRequests {
    /// All requests in progress, including those not listed.
    under_way_count: usize,
    /// Number of the newest requests whose content is kept; 0: none is.
    content_requests: usize,
    under_way: Vec<RecentRequest>,
    recent: Vec<RecentRequest>,
}

/// The entry of a request in progress. A request dropped before it ended counts as aborted.
#[derive(Debug)]
pub(crate) struct RecentEntry {
    recent: Arc<Recent>,
    place: u64,
}

impl Recent {
    /// `most`: of how many requests the content is kept; `time`: how long.
    pub(crate) fn new(most: usize, time: Duration) -> Self {
        Self { log: Mutex::default(), contents: RecentContents::new(most, time) }
    }

    /// Keeps the body of a request, if the configuration asks for that.
    pub(crate) fn keep(&self, id: &str, body: &[u8]) -> Option<ContentRecord> {
        RecentContents::keep(&self.contents, id, body)
    }

    /// The content of a request, if it is kept.
    pub(crate) fn content(&self, id: &str) -> Option<Content> {
        self.contents.of(id)
    }

    /// A request that has just reached its operation.
    pub(crate) fn begin(this: &Arc<Self>, operation: &'static Operation, id: &str) -> RecentEntry {
        let mut log = this.log();
        let place = log.next;
        log.next += 1;
        log.under_way.insert(
            place,
            RecentRequest {
                id: id.to_owned(),
                operation: operation.id,
                key: None,
                model: None,
                upstream: None,
                started: unix_millis(),
                status: None,
                error: None,
                first_byte_ms: None,
                duration_ms: 0,
                bytes: 0,
                outcome: None,
                content: false,
                consumed: Consumed::default(),
                since: Instant::now(),
            },
        );
        RecentEntry { recent: Arc::clone(this), place }
    }

    /// The current requests.
    pub(crate) fn listed(&self) -> RecentRequests {
        let log = self.log();
        let mut under_way: Vec<RecentRequest> =
            log.under_way.values().rev().take(MAX_LISTED).cloned().collect();
        for entry in &mut under_way {
            entry.duration_ms = millis(entry.since.elapsed());
        }
        let mut recent: Vec<RecentRequest> = log.ended.iter().rev().cloned().collect();
        let ids = self.contents.ids();
        for entry in under_way.iter_mut().chain(&mut recent) {
            entry.content = ids.contains(&entry.id);
        }
        let (under_way_count, content_requests) = (log.under_way.len(), self.contents.most());
        RecentRequests { under_way_count, content_requests, under_way, recent }
    }

    fn log(&self) -> MutexGuard<'_, RequestLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecentEntry {
    /// Its key was accepted.
    pub(crate) fn admitted(&self, key: &Arc<str>) {
        self.change(|entry| entry.key = Some(Arc::clone(key)));
    }

    /// Where what it consumes is shown.
    pub(crate) fn consumed(&self) -> Consumed {
        let consumed = Consumed::default();
        self.change(|entry| entry.consumed = Arc::clone(&consumed));
        consumed
    }

    /// Its response begins. `error`: the gateway's code, if it is an error of the gateway.
    pub(super) fn answered(&self, status: u16, error: Option<&'static str>, origin: Option<&Origin>) {
        self.change(|entry| {
            (entry.status, entry.error) = (Some(status), error);
            entry.first_byte_ms = Some(millis(entry.since.elapsed()));
            entry.model = origin.map(|origin| Arc::clone(&origin.model));
            entry.upstream = origin.and_then(Origin::upstream).map(Arc::clone);
        });
    }

    /// An upstream's answer arrived later.
    pub(super) fn found(&self, origin: &Origin) {
        self.change(|entry| entry.upstream = origin.upstream().map(Arc::clone));
    }

    /// Its response was sent, or won't be.
    pub(super) fn ended(&self, outcome: &'static str, bytes: u64) {
        let mut log = self.recent.log();
        let Some(mut entry) = log.under_way.remove(&self.place) else { return };
        entry.duration_ms = millis(entry.since.elapsed());
        (entry.outcome, entry.bytes) = (Some(outcome), bytes);
        if log.ended.len() == MAX_ENDED {
            log.ended.pop_front();
        }
        log.ended.push_back(entry);
    }

    fn change(&self, change: impl FnOnce(&mut RecentRequest)) {
        if let Some(entry) = self.recent.log().under_way.get_mut(&self.place) {
            change(entry);
        }
    }
}

impl Drop for RecentEntry {
    fn drop(&mut self) {
        self.ended("aborted", 0);
    }
}

#[cfg(test)]
mod tests {
    use gatewright::operations;
    use serde_json::{Value, json};

    use super::*;

    fn listed(recent: &Recent) -> Value {
        serde_json::to_value(recent.listed()).expect("plain values")
    }

    #[test]
    fn request_is_listed_as_under_way_until_it_ends() {
        let recent = Arc::<Recent>::default();
        let shown = Recent::begin(&recent, &operations::CREATE_IMAGE, "req_1");
        shown.admitted(&"key_1".into());
        let now = listed(&recent);
        assert_eq!((&now["under_way_count"], &now["recent"]), (&json!(1), &json!([])));
        assert_eq!(now["under_way"][0]["key"], "key_1");
        assert_eq!(now["under_way"][0]["outcome"], Value::Null);

        let origin = Origin::new("painter".into(), "one".into());
        shown.answered(200, None, Some(&origin));
        shown.ended("complete", 12);
        drop(shown);
        let now = listed(&recent);
        assert_eq!((&now["under_way_count"], &now["under_way"]), (&json!(0), &json!([])));
        let [ended] = now["recent"].as_array().expect("a list").as_slice() else { panic!("{now}") };
        assert_eq!((&ended["model"], &ended["upstream"]), (&json!("painter"), &json!("one")));
        assert_eq!(
            (&ended["outcome"], &ended["bytes"], &ended["status"]),
            (&json!("complete"), &json!(12), &json!(200))
        );
    }

    #[test]
    fn upstream_found_after_the_response_began_is_listed() {
        let recent = Arc::<Recent>::default();
        let shown = Recent::begin(&recent, &operations::CREATE_CHAT_COMPLETION, "req_1");
        let origin = Origin::sought("m".into());
        shown.answered(200, None, Some(&origin));
        let now = listed(&recent);
        assert_eq!(
            (&now["under_way"][0]["model"], &now["under_way"][0]["upstream"]),
            (&json!("m"), &json!(null))
        );
        origin.found(&Origin::new("m".into(), "two".into()));
        shown.found(&origin);
        shown.ended("complete", 1);
        assert_eq!(listed(&recent)["recent"][0]["upstream"], "two");
    }

    #[test]
    fn request_dropped_before_its_response_is_aborted() {
        let recent = Arc::<Recent>::default();
        drop(Recent::begin(&recent, &operations::CREATE_IMAGE, "req_1"));
        let now = listed(&recent);
        assert_eq!(now["recent"][0]["outcome"], "aborted");
        assert_eq!(now["recent"][0]["status"], Value::Null);
    }

    #[test]
    fn oldest_ended_requests_are_evicted() {
        let recent = Arc::<Recent>::default();
        for number in 0..MAX_ENDED + 3 {
            drop(Recent::begin(&recent, &operations::CREATE_IMAGE, &format!("req_{number}")));
        }
        let now = listed(&recent);
        let ended = now["recent"].as_array().expect("a list");
        assert_eq!(ended.len(), MAX_ENDED);
        assert_eq!(ended[0]["id"], format!("req_{}", MAX_ENDED + 2));
        assert_eq!(ended[MAX_ENDED - 1]["id"], "req_3");
    }
}
