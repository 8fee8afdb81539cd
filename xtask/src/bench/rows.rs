//! What is measured, against which peers, and with which targets for the clients and the validator.

use self::Target::{MebibytesMore, MillisecondsMore, Rate, Times, WallRate, WallTimes};
use super::Subject;
use super::program::Program::{
    self, AsyncOpenai, Lines, LiteLlm, Node, NodeStart, Python, PythonStart, Rust,
};

/// One line of the table of targets.
pub(super) struct BenchRow {
    pub(super) subject: Subject,
    pub(super) title: &'static str,
    /// Ours is the first.
    pub(super) ways: &'static [Contender],
    pub(super) targets: &'static [Target],
}

/// An implementation to measure.
#[derive(Clone, Copy)]
pub(super) struct Contender {
    pub(super) name: &'static str,
    pub(super) program: Program,
    /// First arguments of the program.
    pub(super) task: &'static str,
    /// Operations or streams per round.
    pub(super) count: u32,
}

impl Contender {
    /// Whether it is ours, which `--compare` measures twice.
    pub(super) fn is_ours(&self) -> bool {
        self.name.starts_with("ours")
    }

    /// The model or document of its task.
    pub(super) fn subject(&self) -> &'static str {
        self.task.split(' ').next_back().unwrap_or_default()
    }
}

/// The target for ours. Processor time counts unless stated otherwise.
pub(super) enum Target {
    /// At most this multiple of the other's.
    Times(f64, &'static str),
    /// The same in wall-clock time.
    WallTimes(f64, &'static str),
    /// At least this many GB per second of processor time.
    Rate(f64),
    /// The same in wall-clock time.
    WallRate(f64),
    /// At most this many milliseconds more than the other.
    MillisecondsMore(f64, &'static str),
    /// A peak of at most this many MiB more than the other.
    MebibytesMore(f64, &'static str),
}

const fn way(name: &'static str, program: Program, task: &'static str, count: u32) -> Contender {
    Contender { name, program, task, count }
}

const fn row(
    subject: Subject,
    title: &'static str,
    ways: &'static [Contender],
    targets: &'static [Target],
) -> BenchRow {
    BenchRow { subject, title, ways, targets }
}

pub(super) const ROWS: &[BenchRow] = &[
    row(
        Subject::Client,
        "Python, a JSON request",
        &[
            way("ours", Python("ours"), "ask plain", 2000),
            way("openai", Python("openai_sdk"), "ask plain", 300),
            way("litellm", LiteLlm, "ask plain", 100),
            way("httpx + json", Python("httpx_by_hand"), "ask plain", 600),
            way("a bare socket", Python("socket_by_hand"), "ask plain", 4000),
            way("reqwest, one thread", Rust("by_hand"), "ask-one plain", 4000),
        ],
        &[Times(1.0 / 30.0, "openai"), Times(1.6, "reqwest, one thread")],
    ),
    row(
        Subject::Client,
        "Python, async, 100 requests at a time",
        &[
            way("ours", Python("ours"), "crowd plain", 4000),
            way("openai", Python("openai_sdk"), "crowd plain", 300),
            way("httpx + json", Python("httpx_by_hand"), "crowd plain", 300),
            way("a bare socket", Python("socket_by_hand"), "crowd plain", 4000),
        ],
        &[WallTimes(1.0 / 40.0, "openai")],
    ),
    row(
        Subject::Client,
        "Node, a JSON request",
        &[
            way("ours", Node("ours"), "ask plain", 3000),
            way("openai", Node("openai_sdk"), "ask plain", 1000),
            way("AI SDK", Node("ai_sdk"), "ask plain", 600),
            way("fetch + JSON.parse", Node("fetch_by_hand"), "ask plain", 1000),
            way("a bare socket", Node("socket_by_hand"), "ask plain", 3000),
        ],
        &[Times(1.0 / 12.0, "openai")],
    ),
    row(
        Subject::Client,
        "Rust, a request",
        &[
            way("ours", Rust("ours"), "ask plain", 4000),
            way("async-openai", AsyncOpenai, "ask plain", 4000),
            way("reqwest + serde", Rust("by_hand"), "ask plain", 4000),
        ],
        &[Times(1.1, "reqwest + serde"), Times(1.0, "async-openai")],
    ),
    row(
        Subject::Client,
        "Rust, a request, one thread",
        &[
            way("ours", Rust("ours"), "ask-one plain", 8000),
            way("async-openai", AsyncOpenai, "ask-one plain", 8000),
            way("reqwest + serde", Rust("by_hand"), "ask-one plain", 8000),
        ],
        &[Times(1.1, "reqwest + serde"), Times(1.0, "async-openai")],
    ),
    row(
        Subject::Stream,
        "Python, a chunk in a packet of its own",
        &[
            way("ours", Python("ours"), "read paced-2000-0.2", 3),
            way("openai", Python("openai_sdk"), "read paced-2000-0.2", 2),
            way("litellm", LiteLlm, "read paced-2000-0.2", 1),
            way("httpx + json", Python("httpx_by_hand"), "read paced-2000-0.2", 2),
            way("a bare socket", Python("socket_by_hand"), "read paced-2000-0.2", 3),
            way("reqwest, one thread", Rust("by_hand"), "read-one paced-2000-0.2", 3),
        ],
        &[Times(1.0 / 12.0, "openai"), Times(1.6, "reqwest, one thread")],
    ),
    row(
        Subject::Stream,
        "Python, async, a chunk in a packet of its own",
        &[
            way("ours", Python("ours"), "read-async paced-2000-0.2", 3),
            way("openai", Python("openai_sdk"), "read-async paced-2000-0.2", 2),
            way("litellm", LiteLlm, "read-async paced-2000-0.2", 1),
            way("httpx + json", Python("httpx_by_hand"), "read-async paced-2000-0.2", 2),
            way("a bare socket", Python("socket_by_hand"), "read-async paced-2000-0.2", 3),
        ],
        &[Times(1.0 / 5.0, "openai")],
    ),
    row(
        Subject::Stream,
        "Python, a typed chunk in large packets",
        &[
            way("ours", Python("ours"), "read chunks-2000", 30),
            way("openai", Python("openai_sdk"), "read chunks-2000", 4),
            way("litellm", LiteLlm, "read chunks-2000", 1),
            way("httpx + json", Python("httpx_by_hand"), "read chunks-2000", 20),
            way("httpx + orjson", Python("httpx_by_hand"), "read-orjson chunks-2000", 30),
        ],
        &[Times(1.0 / 40.0, "openai"), Times(1.0, "httpx + orjson")],
    ),
    row(
        Subject::Stream,
        "Python, async, a typed chunk in large packets",
        &[
            way("ours", Python("ours"), "read-async chunks-2000", 30),
            way("openai", Python("openai_sdk"), "read-async chunks-2000", 4),
            way("litellm", LiteLlm, "read-async chunks-2000", 1),
            way("httpx + json", Python("httpx_by_hand"), "read-async chunks-2000", 20),
            way("httpx + orjson", Python("httpx_by_hand"), "read-async-orjson chunks-2000", 30),
        ],
        &[Times(1.0 / 40.0, "openai"), Times(1.0, "httpx + orjson")],
    ),
    row(
        Subject::Stream,
        "Python, a typed chunk in large packets, chunks that vary",
        &[
            way("ours", Python("ours"), "read varied-2000", 30),
            way("openai", Python("openai_sdk"), "read varied-2000", 4),
            way("httpx + json", Python("httpx_by_hand"), "read varied-2000", 20),
            way("httpx + orjson", Python("httpx_by_hand"), "read-orjson varied-2000", 30),
        ],
        &[Times(1.0 / 40.0, "openai"), Times(1.0, "httpx + orjson")],
    ),
    row(
        Subject::Stream,
        "Node, a chunk in a packet of its own",
        &[
            way("ours", Node("ours"), "read paced-2000-0.2", 3),
            way("openai", Node("openai_sdk"), "read paced-2000-0.2", 2),
            way("AI SDK", Node("ai_sdk"), "read paced-2000-0.2", 2),
            way("fetch + JSON.parse", Node("fetch_by_hand"), "read paced-2000-0.2", 2),
            way("a bare socket", Node("socket_by_hand"), "read paced-2000-0.2", 3),
        ],
        &[Times(1.0 / 3.0, "openai"), Times(1.0, "fetch + JSON.parse")],
    ),
    row(
        Subject::Stream,
        "Node, a typed chunk in large packets",
        &[
            way("ours", Node("ours"), "read chunks-2000", 60),
            way("openai", Node("openai_sdk"), "read chunks-2000", 20),
            way("AI SDK", Node("ai_sdk"), "read chunks-2000", 10),
            way("fetch + JSON.parse", Node("fetch_by_hand"), "read chunks-2000", 40),
        ],
        &[Times(1.0 / 14.0, "openai")],
    ),
    row(
        Subject::Stream,
        "Rust, a typed chunk in large packets",
        &[
            way("ours", Rust("ours"), "read chunks-2000", 150),
            way("async-openai", AsyncOpenai, "read chunks-2000", 60),
            way("reqwest + serde", Rust("by_hand"), "read chunks-2000", 200),
        ],
        &[Times(1.4, "reqwest + serde")],
    ),
    row(
        Subject::Stream,
        "Rust, a typed chunk in large packets, one thread",
        &[
            way("ours", Rust("ours"), "read-one chunks-2000", 150),
            way("async-openai", AsyncOpenai, "read-one chunks-2000", 60),
            way("reqwest + serde", Rust("by_hand"), "read-one chunks-2000", 200),
        ],
        &[Times(1.4, "reqwest + serde")],
    ),
    row(
        Subject::Stream,
        "Rust, a chunk in a packet of its own",
        &[
            way("ours", Rust("ours"), "read paced-2000-0.2", 3),
            way("async-openai", AsyncOpenai, "read paced-2000-0.2", 3),
            way("reqwest + serde", Rust("by_hand"), "read paced-2000-0.2", 3),
        ],
        &[Times(1.1, "reqwest + serde"), Times(1.0, "async-openai")],
    ),
    row(
        Subject::Stream,
        "Rust, a chunk in a packet of its own, one thread",
        &[
            way("ours", Rust("ours"), "read-one paced-2000-0.2", 3),
            way("async-openai", AsyncOpenai, "read-one paced-2000-0.2", 3),
            way("reqwest + serde", Rust("by_hand"), "read-one paced-2000-0.2", 3),
        ],
        &[Times(1.1, "reqwest + serde"), Times(1.0, "async-openai")],
    ),
    row(
        Subject::Validate,
        "Python, a valid report",
        &[
            way("ours", Python("reports"), "ours usual.json", 20_000),
            way("jsonschema-rs + orjson", Python("reports"), "jsonschema-rs usual.json", 10_000),
            way("fastjsonschema + orjson", Python("reports"), "fastjsonschema usual.json", 2000),
            way("orjson alone", Python("reports"), "orjson usual.json", 20_000),
        ],
        &[Times(1.0 / 6.0, "jsonschema-rs + orjson"), Times(1.0, "orjson alone")],
    ),
    // Each way of a row runs equally often: V8 compiles hot code on other threads, and that time counts for the
    // process.
    row(
        Subject::Validate,
        "Node, a valid report",
        &[
            way("ours", Node("reports"), "ours usual.json", 30_000),
            way("JSON.parse + ajv", Node("reports"), "ajv usual.json", 30_000),
            way("JSON.parse alone", Node("reports"), "parse usual.json", 30_000),
        ],
        &[Times(1.0 / 6.0, "JSON.parse + ajv")],
    ),
    row(
        Subject::Validate,
        "Rust, a valid report",
        &[
            way("ours", Rust("report"), "ours usual.json", 50_000),
            way("serde_json + jsonschema", Rust("report"), "jsonschema usual.json", 10_000),
            way("serde_json alone", Rust("report"), "serde_json usual.json", 10_000),
        ],
        &[Times(0.1, "serde_json + jsonschema"), Rate(1.0)],
    ),
    row(
        Subject::Validate,
        "Python, an invalid report, all findings",
        &[
            way("ours", Python("reports"), "ours invalid.json", 10_000),
            way("ours, valid report", Python("reports"), "ours usual.json", 20_000),
            way(
                "jsonschema-rs + orjson, verdict only",
                Python("reports"),
                "jsonschema-rs invalid.json",
                10_000,
            ),
        ],
        &[Times(3.0, "ours, valid report"), Times(1.0, "jsonschema-rs + orjson, verdict only")],
    ),
    row(
        Subject::Validate,
        "Node, an invalid report, all findings",
        &[
            way("ours", Node("reports"), "ours invalid.json", 30_000),
            way("ours, valid report", Node("reports"), "ours usual.json", 30_000),
            way("JSON.parse + ajv, first error", Node("reports"), "ajv invalid.json", 30_000),
        ],
        &[Times(3.0, "ours, valid report"), Times(1.0, "JSON.parse + ajv, first error")],
    ),
    row(
        Subject::Validate,
        "Rust, an invalid report, all findings",
        &[
            way("ours", Rust("report"), "ours invalid.json", 10_000),
            way("ours, valid report", Rust("report"), "ours usual.json", 50_000),
            way("serde_json + jsonschema, first error", Rust("report"), "jsonschema invalid.json", 10_000),
        ],
        &[Times(3.0, "ours, valid report"), Times(1.0, "serde_json + jsonschema, first error")],
    ),
    row(
        Subject::Validate,
        "CLI, a report in NDJSON",
        &[
            way("ours", Lines("gatewright"), "", 100_000),
            way("ours, one core", Lines("gatewright on one core"), "", 100_000),
            way("ours, a tenth of the lines", Lines("gatewright"), "", 10_000),
            way("jsonschema-rs script", Lines("jsonschema-rs"), "", 100_000),
            way("ajv-cli, one file each", Lines("ajv-cli"), "", 2000),
        ],
        &[
            WallTimes(1.0 / 1.6, "ours, one core"),
            WallRate(1.0),
            MebibytesMore(8.0, "ours, a tenth of the lines"),
            WallTimes(1.0, "jsonschema-rs script"),
        ],
    ),
    row(
        Subject::Start,
        "Python, import and first client",
        &[
            way("ours", PythonStart, "ours", 11),
            way("bare Python", PythonStart, "bare", 11),
            way("openai", PythonStart, "openai", 3),
        ],
        &[MillisecondsMore(15.0, "bare Python"), MebibytesMore(8.0, "bare Python")],
    ),
    row(
        Subject::Start,
        "Node, import and first client",
        &[
            way("ours", NodeStart, "ours", 11),
            way("bare Node", NodeStart, "bare", 11),
            way("openai", NodeStart, "openai", 5),
        ],
        &[MillisecondsMore(20.0, "bare Node")],
    ),
];
