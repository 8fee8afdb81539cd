//! Compatibility reports (specification 2.12): strict reading, validation, advisories, diagnostics.
//!
//! ```
//! let outcome = gatewright::report::validate(br#"{"schema_version": "1.0"}"#);
//! assert!(!outcome.valid);
//! let first = &outcome.violations[0];
//! assert_eq!((first.line, first.column, first.rule), (1, 1, "required"));
//! assert_eq!(first.message, "kit is missing (2.12)");
//! ```
//!
//! The way of a document: bytes → `read` (our own reader; refuses what two parsers could understand
//! differently) → `tree` (values with byte spans) → the schema (`compiled`), by the jsonschema crate over that tree →
//! `explain` (violations in words) and `advise` → `typed` ([`Report`]). What they find goes into `findings`, which keeps
//! the first and counts the rest. `render` makes text of an outcome.
//!
//! What is made of a report: `matrix` is its shape, `page` draws it in HTML, `terminal` in text, `junit` and
//! `annotations` for CI; `diff` compares two. What is made of a document: `canonical`. `rules` explains what verdicts
//! name, `sarif` writes verdicts for code scanning, `pool` makes many of them at once, from `ndjson` too. `profile` is a
//! deployment's own kit name and models, `evidence` what a kit saw, `skeleton` a report to start from.

mod advise;
mod annotations;
mod canonical;
mod clock;
mod compiled;
mod diff;
mod evidence;
mod explain;
mod finding;
mod findings;
mod junit;
mod matrix;
mod model;
mod ndjson;
mod page;
mod pool;
mod profile;
mod read;
mod render;
mod rules;
mod sarif;
mod skeleton;
mod terminal;
mod tree;
mod typed;
mod validate;

pub use annotations::annotations;
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
pub use ndjson::{Line, Lines};
pub use page::{MAX_TREND_ENDPOINTS, MAX_TREND_REPORTS, Trend, html};
pub use pool::{Judged, Pool, Source};
pub use profile::{MAX_PROFILE_MODELS, Profile};
pub use read::MAX_DEPTH;
pub use rules::{RULES, Rule, RuleKind};
pub use sarif::{SARIF_FOOT, sarif_head};
pub use terminal::terminal;
pub use validate::{MAX_BYTES, Outcome, SCHEMA, Validator, ValidatorBuilder};

/// Validates one document by the specification's own settings; see [`Validator::validate`].
pub fn validate(document: &[u8]) -> Outcome {
    Validator::default().validate(document)
}
