//! The content of the newest requests, if the configuration asks for it: the beginnings of their bodies, for a limited time. It is in
//! memory only, and never in a file or in the log.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use gatewright::redact::REDACTED;
use serde::Serialize;

/// How much of a body is kept, in bytes.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// How the keys begin that gateways issue, and the minimum number of characters that follow.
const ISSUED: (&str, usize) = ("gw-", 40);

/// See the module.
#[derive(Debug)]
pub(super) struct RecentContents {
    /// Maximum number of requests; 0: nothing is kept.
    most: usize,
    /// How long.
    time: Duration,
    entries: Mutex<VecDeque<StoredContent>>,
}

#[derive(Debug)]
struct StoredContent {
    id: String,
    since: Instant,
    content: Arc<Mutex<Content>>,
}

/// The bodies of a request and of its response.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    request: RecordedBody,
    response: RecordedBody,
}

/// The beginning of a body.
#[derive(Debug, Clone, Default)]
struct RecordedBody {
    beginning: Vec<u8>,
    /// Size of the whole body so far.
    bytes: u64,
}

/// Records the response of a request, as long as its content is kept.
#[derive(Debug)]
pub(crate) struct ContentRecord(Weak<Mutex<Content>>);

/// A content as shown to operators.
#[derive(Debug, Serialize)]
pub(crate) struct ShownContent {
    request: ShownBody,
    response: ShownBody,
}

#[derive(Debug, Serialize)]
struct ShownBody {
    /// The beginning of the body, redacted.
    text: String,
    /// Size of the whole body.
    bytes: u64,
    /// Whether the text is only the beginning.
    cut: bool,
}

impl RecentContents {
    pub(super) fn new(most: usize, time: Duration) -> Arc<Self> {
        Arc::new(Self { most, time, entries: Mutex::default() })
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Keeps a request's body, in place of that of the oldest request if there are too many. None: nothing is kept.
    pub(super) fn keep(this: &Arc<Self>, id: &str, body: &[u8]) -> Option<ContentRecord> {
        if this.most == 0 {
            return None;
        }
        let mut content = Content::default();
        content.request.add(body);
        let content = Arc::new(Mutex::new(content));
        let record = ContentRecord(Arc::downgrade(&content));
        let mut entries = this.entries();
        // Otherwise that task is waiting.
        if entries.is_empty() {
            tokio::spawn(Self::expire(Arc::downgrade(this), this.time));
        }
        entries.push_back(StoredContent { id: id.to_owned(), since: Instant::now(), content });
        if entries.len() > this.most {
            entries.pop_front();
        }
        Some(record)
    }

    /// Removes what has expired, until nothing is kept.
    async fn expire(this: Weak<Self>, time: Duration) {
        let mut wait = time;
        loop {
            tokio::time::sleep(wait).await;
            let Some(this) = this.upgrade() else { return };
            let mut entries = this.entries();
            while entries.front().is_some_and(|oldest| oldest.since.elapsed() >= time) {
                entries.pop_front();
            }
            let Some(oldest) = entries.front() else { return };
            wait = time.saturating_sub(oldest.since.elapsed());
        }
    }

    /// The ids of the requests whose content is kept.
    pub(super) fn ids(&self) -> Vec<String> {
        self.entries().iter().map(|entry| entry.id.clone()).collect()
    }

    /// The content of a request.
    pub(super) fn of(&self, id: &str) -> Option<Content> {
        let entries = self.entries();
        let found = entries.iter().find(|entry| entry.id == id && entry.since.elapsed() < self.time)?;
        Some(lock(&found.content).clone())
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<StoredContent>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ContentRecord {
    /// The next part of the response.
    pub(super) fn sent(&self, data: &[u8]) {
        if let Some(content) = self.0.upgrade() {
            lock(&content).response.add(data);
        }
    }
}

impl Content {
    /// For operators. `redact`: replaces the secrets that the gateway knows, and what looks like others.
    pub(crate) fn shown(&self, redact: impl Fn(&str) -> String) -> ShownContent {
        ShownContent { request: self.request.shown(&redact), response: self.response.shown(&redact) }
    }
}

impl RecordedBody {
    fn add(&mut self, data: &[u8]) {
        let room = MAX_BODY_BYTES - self.beginning.len();
        self.beginning.extend_from_slice(&data[..data.len().min(room)]);
        self.bytes += data.len() as u64;
    }

    fn shown(&self, redact: impl Fn(&str) -> String) -> ShownBody {
        let cut = self.bytes > self.beginning.len() as u64;
        let text = String::from_utf8_lossy(&self.beginning);
        // The last character may be cut.
        let text = if cut { text.trim_end_matches(char::REPLACEMENT_CHARACTER) } else { &text };
        ShownBody { text: without_issued_keys(&redact(text)), bytes: self.bytes, cut }
    }
}

/// Redacts what looks like a key of a gateway: only digests of most of them are known.
fn without_issued_keys(text: &str) -> String {
    let (beginning, least) = ISSUED;
    let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(beginning) {
        let after = at + beginning.len();
        let length = rest[after..].find(|character| !is_part(character)).unwrap_or(rest.len() - after);
        shown.push_str(&rest[..at]);
        shown.push_str(if length >= least { REDACTED } else { &rest[at..after + length] });
        rest = &rest[after + length..];
    }
    shown + rest
}

fn lock(content: &Mutex<Content>) -> MutexGuard<'_, Content> {
    content.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn shown(contents: &RecentContents, id: &str) -> Value {
        let content = contents.of(id).expect("it is kept");
        serde_json::to_value(content.shown(str::to_owned)).expect("plain values")
    }

    #[tokio::test]
    async fn newest_contents_are_kept_and_cut() {
        let contents = RecentContents::new(2, HOUR);
        let first = RecentContents::keep(&contents, "1", b"one").expect("it is on");
        first.sent(b"a");
        first.sent("é".repeat(MAX_BODY_BYTES / 2).as_bytes());
        let expected = json!({
            "request": { "text": "one", "bytes": 3, "cut": false },
            "response": {
                "text": format!("a{}", "é".repeat(MAX_BODY_BYTES / 2 - 1)),
                "bytes": MAX_BODY_BYTES + 1,
                "cut": true,
            },
        });
        assert_eq!(shown(&contents, "1"), expected);
        for id in ["2", "3"] {
            RecentContents::keep(&contents, id, b"").expect("it is on");
        }
        assert_eq!(contents.ids(), ["2", "3"]);
        assert!(contents.of("1").is_none());
        // Its response may still arrive.
        first.sent(b"more");
        assert!(first.0.upgrade().is_none(), "nothing of it is in memory");
        assert!(RecentContents::keep(&RecentContents::new(0, HOUR), "1", b"one").is_none(), "off by default");
    }

    #[tokio::test]
    async fn contents_are_dropped_in_time_without_further_requests() {
        let contents = RecentContents::new(9, Duration::from_millis(30));
        let first = RecentContents::keep(&contents, "1", b"one").expect("it is on");
        tokio::time::sleep(Duration::from_millis(20)).await;
        let second = RecentContents::keep(&contents, "2", b"two").expect("it is on");
        for record in [&first, &second] {
            let gone = tokio::time::timeout(Duration::from_secs(20), async {
                while record.0.upgrade().is_some() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            });
            gone.await.expect("it expires");
        }
        RecentContents::keep(&contents, "3", b"three").expect("it is on");
        assert_eq!(contents.ids(), ["3"]);
    }

    #[test]
    fn keys_of_gateways_are_redacted() {
        let key = format!("gw-{}", "aB3_-".repeat(9));
        let text = format!("{{\"key\":\"{key}\"}} gw-short {key}.");
        let expected = format!("{{\"key\":\"{REDACTED}\"}} gw-short {REDACTED}.");
        assert_eq!(without_issued_keys(&text), expected);
    }
}
