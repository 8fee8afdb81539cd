//! Service tiers of the chat and responses protocols.

/// The service tier of a response: the simulated provider treats all tiers alike, and `auto` becomes `default` (ours).
pub(crate) fn served_tier(asked: &str) -> &str {
    if asked == "auto" { "default" } else { asked }
}
