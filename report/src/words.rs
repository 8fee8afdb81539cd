//! Human-readable wording for the codes in a report. The codes are for programs, which read them in the report itself;
//! all other output uses this wording.

use std::borrow::Cow;

use crate::model::CheckId;

/// Why a cell was not run: the code, the text after its colon (empty: any text), and the wording.
const REASONS: [(&str, &str, &str); 8] = [
    ("filtered", "", "the selection of checks leaves it out"),
    ("not_full", "", "only the first model gets this check unless the run is full"),
    ("agent_mode", "skipped", "the coding agent runs only with --agent-mode"),
    ("agent_mode", "", "the coding agent runs on the first model only"),
    ("dependency_failed", "models_endpoint gave no list of models", "the service gave no list of models"),
    ("dependency_failed", "models_endpoint was not run", "the list of models was not requested"),
    (
        "dependency_failed",
        "models_endpoint lists the model without the responses protocol",
        "the service lists the model without the responses protocol",
    ),
    ("aborted", "", "the run was interrupted"),
];

/// Whether a reason means that the run did not include the cell: its selection, not the service, is why there is no result.
pub(crate) fn is_by_choice(reason: &str) -> bool {
    let (code, detail) = reason.split_once(':').unwrap_or((reason, ""));
    match code {
        "filtered" | "not_full" | "agent_mode" => true,
        "dependency_failed" => detail.trim() == "models_endpoint was not run",
        _ => false,
    }
}

/// The reason of a skipped cell. An unknown code is shown unchanged: it may be another kit's.
pub(crate) fn of_reason(reason: &str) -> Cow<'_, str> {
    let Some((code, detail)) = reason.split_once(':') else { return Cow::Borrowed(reason) };
    let detail = detail.trim();
    let known = REASONS.iter().find(|(known, of, _)| *known == code && (of.is_empty() || *of == detail));
    match known {
        Some((_, _, words)) => Cow::Borrowed(words),
        None if code == "dependency_failed" && CheckId::ALL.iter().any(|id| id.name() == detail) => {
            Cow::Owned(format!("the check {detail} did not pass"))
        }
        None if code == "dependency_failed" && !detail.is_empty() => Cow::Borrowed(detail),
        None => Cow::Borrowed(reason),
    }
}

/// The kind of a failure: `connection lost`.
pub(crate) fn of_category(category: &str) -> Cow<'_, str> {
    match category {
        "dns" => "DNS".into(),
        "tls" => "TLS".into(),
        "http_status" => "HTTP status".into(),
        _ if category.contains('_') => category.replace('_', " ").into(),
        _ => category.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unselected_cells_are_distinguished_from_those_that_could_not_run() {
        for (reason, by_choice) in [
            ("filtered: --only", true),
            ("not_full: runs on the first model only unless the run is full", true),
            ("agent_mode: skipped", true),
            ("dependency_failed: models_endpoint was not run", true),
            ("dependency_failed: models_endpoint gave no list of models", false),
            ("aborted: the run was interrupted", false),
            ("theirs: why", false),
            ("", false),
        ] {
            assert_eq!(is_by_choice(reason), by_choice, "{reason}");
        }
    }

    #[test]
    fn known_codes_become_words_and_unknown_ones_are_unchanged() {
        for (reason, words) in [
            ("filtered: --only", "the selection of checks leaves it out"),
            ("agent_mode: skipped", "the coding agent runs only with --agent-mode"),
            ("agent_mode: one-model, so not here", "the coding agent runs on the first model only"),
            ("dependency_failed: models_endpoint was not run", "the list of models was not requested"),
            ("dependency_failed: model_access", "the check model_access did not pass"),
            ("dependency_failed: no network", "no network"),
            ("dependency_failed:", "dependency_failed:"),
            ("theirs: why", "theirs: why"),
            ("not run", "not run"),
        ] {
            assert_eq!(of_reason(reason), words);
        }
        for (category, words) in [("connection_lost", "connection lost"), ("tls", "TLS"), ("agent", "agent")]
        {
            assert_eq!(of_category(category), words);
        }
    }
}
