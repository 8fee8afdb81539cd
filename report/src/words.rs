//! Human-readable wording for the codes in a report. The codes are for programs, which read them in the report itself;
//! all other output uses this wording.

use std::borrow::Cow;

use crate::model::CheckId;

/// Why a cell was not run: the code, the text after its colon (empty: any text), and the wording.
const REASONS: [(&str, &str, &str); 7] = [
    ("filtered", "", "the selection of checks leaves it out"),
    ("not_full", "", "only the first model gets this check unless the run is full"),
    ("agent_mode", "skipped", "no coding agent was asked for"),
    ("agent_mode", "", "the coding agent runs on the first model only"),
    ("dependency_failed", "models_endpoint gave no list of models", "the service gave no list of models"),
    ("dependency_failed", "models_endpoint was not run", "the list of models was not asked for"),
    ("aborted", "", "the run was interrupted"),
];

/// The reason of a skipped cell. An unknown code is kept: it may be another kit's.
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
    fn codes_become_words_and_what_is_not_known_stays() {
        for (reason, words) in [
            ("filtered: --only", "the selection of checks leaves it out"),
            ("agent_mode: skipped", "no coding agent was asked for"),
            ("agent_mode: one-model, so not here", "the coding agent runs on the first model only"),
            ("dependency_failed: models_endpoint was not run", "the list of models was not asked for"),
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
