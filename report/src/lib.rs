//! Compatibility reports: strict reading, validation, advisories, diagnostics.
//!
//! ```
//! let outcome = gatewright_report::validate(br#"{"schema_version": "1.0"}"#);
//! assert!(!outcome.valid);
//! let first = &outcome.violations[0];
//! assert_eq!((first.line, first.column, first.rule), (1, 1, "required"));
//! assert_eq!(first.message, "kit is missing");
//! ```
//!
//! Processing of a document: bytes → `sure`, which decides most reports while it reads them (`scan`, and the checker in
//! `generated`). For all others: bytes → `read` (our own parser; rejects documents that two parsers could understand
//! differently, and builds no tree for objects that the checker is sure of) → `tree` (values with byte spans) → `schema`
//! (compiled rules that walk the tree) → `explain` (violations in words) and `advise` → `typed` ([`Report`]). `findings`
//! collects the results: it keeps the first findings and counts the rest. `render` formats an outcome as text.
//!
//! Outputs from a report: `matrix` arranges it, `page` writes HTML, `terminal` text, `junit` and `annotations` the
//! formats of CI systems; `diff` compares two reports. `canonical` formats any document. `rules` explains the rules in
//! verdicts, `sarif` writes verdicts for code scanning, and `pool` validates many documents in parallel (`workers`),
//! also from `ndjson`, which `blocks` reads in large parts. `profile` has a deployment's own kit name and models, `evidence` the observations of a kit,
//! `skeleton` a report to start from, and `protocols` the document of additional checks beside a report.

mod advise;
mod annotations;
mod blocks;
mod canonical;
mod causes;
mod clock;
mod diff;
mod evidence;
mod explain;
mod finding;
mod findings;
#[rustfmt::skip]
mod generated;
mod fast_path;
mod junit;
mod matrix;
mod model;
mod ndjson;
mod page;
mod path;
mod pool;
mod profile;
mod protocols;
mod read;
mod render;
mod rules;
mod sarif;
mod scan;
mod schema;
mod skeleton;
mod terminal;
mod tree;
mod typed;
mod validate;
mod words;
mod workers;

pub use annotations::annotations;
pub use blocks::{Block, Blocks};
pub use clock::now;
pub use diff::{Diff, Setting, Side, Thresholds, Timing, Turn, Words};
pub use evidence::{Assertion, Evidence, EvidenceFile, Exchange};
pub use finding::Violation;
pub use findings::MAX_FINDINGS;
pub use junit::junit;
pub use model::{
    AgentMode, Check, CheckError, CheckId, Configuration, Environment, Kit, Layer, OverallStatus, Report,
    Retries, Status, Summary, Usage,
};
pub use ndjson::{Line, Lines, Splitter, is_blank_line};
pub use page::{MAX_TREND_ENDPOINTS, MAX_TREND_REPORTS, PAGE_STYLE, Trend, html, html_with_protocols};
pub use pool::{Pool, PoolResult, Source};
pub use profile::{MAX_PROFILE_MODELS, Profile};
pub use protocols::{ProtocolCheck, ProtocolReport};
pub use read::MAX_DEPTH;
pub use rules::{RULES, Rule, RuleKind, SCHEMA};
pub use sarif::{SARIF_FOOT, sarif, sarif_head};
pub use terminal::terminal;
pub use validate::{MAX_BYTES, Outcome, Validator, ValidatorBuilder};
pub use workers::Workers;

/// Validates one document with the settings of the specification; see [`Validator::validate`].
///
/// ```
/// let report = br#"{ "schema_version": "1.0", "kit": {} }"#;
/// let outcome = gatewright_report::validate(report);
/// assert!(!outcome.valid);
/// assert_eq!(outcome.violations[0].pointer, "");
/// ```
pub fn validate(document: &[u8]) -> Outcome {
    Validator::default().validate(document)
}
