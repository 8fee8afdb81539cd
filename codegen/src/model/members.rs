//! The report member by member, for its reference.

/// A member of the report.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// Its place; `*` stands for every element of an array.
    pub pointer: String,
    /// Each keyword of its schema with its value, as text.
    pub rules: Vec<String>,
    pub meaning: String,
}

/// A rule of the report that involves several members.
#[derive(Debug, Clone)]
pub(crate) struct ReportCondition {
    /// The object that it applies to; empty for the report itself.
    pub pointer: String,
    pub rule: String,
}
