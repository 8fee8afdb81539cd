//! Defines a rule for members that a response must have. The rules are generated (`generated/presence.rs`);
//! `wire::presence` checks responses against them.

/// Members of a response, at least one of which must be present.
#[derive(Debug)]
pub(crate) struct RequiredMembers {
    /// Id of the operation.
    pub(crate) operation: &'static str,
    /// The path from the response to the object; `*` stands for every item of an array.
    pub(crate) path: &'static [&'static str],
    /// The rule applies only if the object has this member with this value.
    pub(crate) when: Option<(&'static str, &'static str)>,
    /// One of these must be present and not null.
    pub(crate) any_of: &'static [&'static str],
    /// Section of the specification.
    pub(crate) section: &'static str,
}
