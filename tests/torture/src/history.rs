//! What happened in a run, line by line, in order: the clients' requests and responses, the upstream's responses, the
//! notifications that receivers got, and the faults. The lines of a run are a file.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The number of the node with its own data folder. Those before it share a database and a bucket.
pub(crate) const ALONE: usize = 3;

/// One line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Line {
    /// Microseconds since the run began. No line is earlier than the one before.
    pub(crate) at: u64,
    #[serde(flatten)]
    pub(crate) event: Event,
}

/// What a line records.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// A client calls a node with a key.
    Called { call: u64, node: usize, key: String, operation: Operation },
    /// The call is over. A call without this line never ended.
    Answered { call: u64, outcome: Outcome },
    /// The upstream starts to answer a node, which has admitted the request. `id`: of the response; older histories lack it.
    Begun { node: usize, intent: u64, id: Option<String> },
    /// The upstream answered a node.
    Upstream { node: usize, intent: u64, input: u64, output: u64, whole: bool },
    /// The upstream accepted a video.
    Filmed { node: usize, intent: u64 },
    /// A notification from a node arrived.
    Delivered { node: usize, id: String, problem: Option<String>, acknowledged: bool, task: Value },
    /// A fault begins or ends.
    Fault { fault: Fault, begins: bool },
    /// No fault follows.
    Quiet,
    /// The usage of a key's requests for a model, as the store reports it at the end. `complete`: those with a complete response.
    /// `cost`: in billionths.
    Counted {
        key: String,
        model: String,
        requests: u64,
        complete: u64,
        input: u64,
        output: u64,
        estimated: u64,
        cost: u64,
    },
}

/// What a client requests. An intent is the part of it that the upstream sees. `once`: the idempotency key.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum Operation {
    Chat {
        intent: u64,
        stream: bool,
        once: Option<String>,
    },
    Respond {
        intent: u64,
        once: Option<String>,
    },
    /// The stored response to an intent, by its ID.
    Retrieve {
        intent: u64,
        id: String,
    },
    /// `notifies`: whether it names a receiver of notifications.
    Submit {
        intent: u64,
        once: Option<String>,
        notifies: bool,
    },
    LookUp {
        task: String,
    },
    Fetch {
        task: String,
    },
    CreateKey {
        name: String,
        limits: Limits,
    },
    RevokeKey {
        name: String,
    },
}

impl Operation {
    /// The idempotency key.
    pub(crate) fn once(&self) -> Option<&str> {
        match self {
            Self::Chat { once, .. } | Self::Respond { once, .. } | Self::Submit { once, .. } => {
                once.as_deref()
            }
            _ => None,
        }
    }

    /// The intent of a text.
    pub(crate) fn text(&self) -> Option<u64> {
        match self {
            Self::Chat { intent, .. } | Self::Respond { intent, .. } => Some(*intent),
            _ => None,
        }
    }
}

/// The limits of a key, as its creation names them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits {
    pub(crate) tokens_per_day: Option<u64>,
    /// In whole units of the currency.
    pub(crate) cost_per_day: Option<u64>,
    pub(crate) requests_per_minute: Option<u64>,
    pub(crate) tokens_per_minute: Option<u64>,
    pub(crate) concurrent_requests: Option<u64>,
}

/// What a client learned.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum Outcome {
    Text {
        id: String,
        text: String,
        input: u64,
        output: u64,
    },
    Task {
        task: Value,
    },
    File {
        digest: String,
    },
    Done,
    Refused {
        status: u16,
        code: String,
    },
    /// There was no complete response: it's unknown whether the gateway did it.
    Lost {
        why: String,
    },
}

/// What happens to the gateways and to what they need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub(crate) enum Fault {
    /// Killed, until it is ready again.
    Killed { node: usize },
    /// Shut down as an operator would, until it is ready again.
    Stopped { node: usize },
    /// It hangs.
    Paused { node: usize },
    /// It does not reach its database; `whole`: nor the counters and the bucket. `silent`: nothing arrives, and no side notices;
    /// otherwise connections break.
    Cut { node: usize, whole: bool, silent: bool },
    /// Its clock is wrong.
    Clock { node: usize, by_ms: i64 },
    /// The database is away.
    Store,
    /// The counters are away and lose their data, or they hang.
    Counters { hang: bool },
    /// The bucket rejects requests.
    Bucket,
    /// The bucket is away: it breaks each connection, or it hangs.
    BucketAway { hang: bool },
    /// The disk of the node with a folder is full.
    Disk,
    /// Receivers of notifications reject them.
    Receiver,
}

/// The history of a run while it is written.
pub(crate) struct History {
    began: Instant,
    written: Mutex<Written>,
}

struct Written {
    file: BufWriter<File>,
    lines: Vec<Line>,
    calls: u64,
}

impl History {
    pub(crate) fn create(place: &Path) -> Result<Self> {
        let file = File::create(place).with_context(|| format!("cannot write {}", place.display()))?;
        let written = Written { file: BufWriter::new(file), lines: Vec::new(), calls: 0 };
        Ok(Self { began: Instant::now(), written: Mutex::new(written) })
    }

    /// Adds a line. The time is taken under the lock, so that the lines are in the order of their times.
    pub(crate) fn add(&self, event: Event) {
        self.enter(&mut self.lock(), event);
    }

    /// Adds the beginning of a call, and returns its number.
    pub(crate) fn call(&self, node: usize, key: &str, operation: Operation) -> u64 {
        let mut written = self.lock();
        written.calls += 1;
        let call = written.calls;
        self.enter(&mut written, Event::Called { call, node, key: key.to_owned(), operation });
        call
    }

    fn enter(&self, written: &mut Written, event: Event) {
        let at = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let line = Line { at, event };
        let json = serde_json::to_string(&line).expect("plain values");
        // An incomplete history would prove nothing.
        writeln!(written.file, "{json}").expect("the history can be written");
        written.lines.push(line);
    }

    /// The lines so far, which are on the disk by then. An hour has a million of them: there is no second copy.
    pub(crate) fn take(&self) -> Vec<Line> {
        let mut written = self.lock();
        written.file.flush().expect("the history can be written");
        std::mem::take(&mut written.lines)
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the history of a run.
pub(crate) fn read(place: &Path) -> Result<Vec<Line>> {
    let file = File::open(place).with_context(|| format!("cannot read {}", place.display()))?;
    let mut lines = Vec::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line = serde_json::from_str(&line?)
            .with_context(|| format!("{}:{} is no line of a history", place.display(), number + 1))?;
        lines.push(line);
    }
    Ok(lines)
}
