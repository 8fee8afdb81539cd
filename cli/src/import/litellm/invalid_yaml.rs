//! Why a text is not YAML, in the words of those who write such files. Never quotes the text, which may contain keys.

use std::fmt::Write as _;

use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

/// Parts of the parser's messages, and what to do. The first match counts.
const CAUSES: [(&[&str], &str); 8] = [
    (&["unknown anchor"], NO_ANCHOR),
    (
        &["':'", "mapping values", "mapping keys"],
        "there is a colon that cannot be one between a key and its value: put quotes around a value that contains a colon and a \
         space, and write a space after the colon of each key, which must be indented as its neighbors",
    ),
    (&["tab "], "it is indented with a tab: use spaces"),
    (&["bracket"], "a bracket ([ or {) is not closed, or is closed by one of another kind"),
    (
        &["unclosed quote", "quoted scalar", "-quoted"],
        "a text in quotes is not closed, continues after its end, or has an unknown escape (\\): use single quotes, and write '' for \
         one in the text",
    ),
    (&["anchor", "alias"], "a name after & or * is missing, or has characters that such names cannot have"),
    (
        &["indent", "block", "'-'", "\"-\""],
        "the indentation is wrong: use spaces, not tabs; items of a list and keys of an object must begin in the same column as their neighbors",
    ),
    (
        &["tag", "directive", "%"],
        "it begins with a character that has a meaning in YAML (such as %, ! or @): put it in quotes",
    ),
];
const NO_ANCHOR: &str = "a name after * is not defined before it with &";
const OTHER: &str =
    "the text cannot continue like this: check the indentation, the quotes and the brackets there and above";

/// The message for an error of the parser.
pub(super) fn explain(error: &Error) -> String {
    let error = error.without_snippet();
    let mut message = "it is not valid YAML".to_owned();
    if let Some(place) = error.location().filter(|place| place.line() > 0) {
        _ = write!(message, " at line {}, column {}", place.line(), place.column());
    }
    message + ": " + cause(error)
}

fn cause(error: &Error) -> &'static str {
    match error {
        Error::MultipleDocuments { .. } | Error::Budget { breach: BudgetBreach::Documents { .. }, .. } => {
            "it has several documents, separated by ---: keep the one with model_list"
        }
        Error::DuplicateMappingKey { .. } => "the same key is there twice: remove one of them",
        Error::UnknownAnchor { .. } => NO_ANCHOR,
        Error::Eof { .. } => "it ends too early: a value is missing",
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "it is nested more deeply, or grows larger through aliases (*), than an import allows"
        }
        Error::ExternalMessage { msg, .. } => {
            let known = CAUSES.iter().find(|(parts, _)| parts.iter().any(|part| msg.contains(part)));
            known.map_or(OTHER, |(_, cause)| cause)
        }
        _ => OTHER,
    }
}
