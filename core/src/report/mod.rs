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
//! differently) → `tree` (values with byte spans) → the schema, by the jsonschema crate over that tree →
//! `explain` (violations in words) and `advise` → `typed` ([`Report`]). `render` makes text of an outcome.

mod advise;
mod explain;
mod finding;
mod model;
mod read;
mod render;
mod tree;
mod typed;
mod validate;

pub use finding::Violation;
pub use model::{
    AgentMode, Check, CheckError, CheckId, Configuration, Environment, Kit, Layer, OverallStatus, Report,
    Retries, Status, Summary, Usage,
};
pub use read::MAX_DEPTH;
pub use validate::{MAX_BYTES, Outcome, SCHEMA, Validator, ValidatorBuilder};

/// Validates one document by the specification's own settings; see [`Validator::validate`].
pub fn validate(document: &[u8]) -> Outcome {
    Validator::default().validate(document)
}
