//! How much a model thinks: effort levels on one side, tokens on the other. This is the only table for it.

/// Effort levels and their token budgets, ascending.
const EFFORTS: [(&str, u64); 5] =
    [("none", 0), ("minimal", 512), ("low", 1_024), ("medium", 8_192), ("high", 24_576)];
/// Token budget of efforts above the table that some providers know, such as `xhigh`.
const MAX_BUDGET: u64 = 32_768;

/// The maximum number of reasoning tokens for an effort; `None`: the effort is unknown.
pub(super) fn budget_of(effort: &str) -> Option<u64> {
    match effort {
        "xhigh" | "max" => Some(MAX_BUDGET),
        _ => EFFORTS.iter().find(|(word, _)| *word == effort).map(|(_, tokens)| *tokens),
    }
}

/// The highest effort within a token budget.
pub(super) fn effort_of(budget: u64) -> &'static str {
    let within = EFFORTS.iter().rev().find(|(_, tokens)| *tokens <= budget);
    match within {
        // Any tokens are more than none.
        Some(("none", 0)) if budget > 0 => "minimal",
        Some((word, _)) => word,
        None => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_effort_round_trips_through_tokens() {
        for (word, tokens) in EFFORTS {
            assert_eq!((budget_of(word), effort_of(tokens)), (Some(tokens), word));
        }
        assert_eq!(budget_of("a word of the client's own"), None);
    }

    #[test]
    fn tokens_between_efforts_round_down_but_never_to_none() {
        assert_eq!(
            [1, 511, 1_500, 10_000, u64::MAX].map(effort_of),
            ["minimal", "minimal", "low", "medium", "high"]
        );
    }
}
