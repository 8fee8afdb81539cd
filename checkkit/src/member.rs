//! The allowed values of members in the JSON object of options.

/// The allowed values of a member.
#[derive(Clone, Copy)]
pub(crate) enum Member {
    Text,
    /// True or false.
    Switch,
    /// Milliseconds, within the bounds of the report's schema.
    Limit,
    Texts,
    Checks,
    /// Protocols with additional checks, or `all`.
    Protocols,
    AgentMode,
    Profile,
}
