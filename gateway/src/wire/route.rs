//! The types of the generated route table.

use gatewright::operations::Operation;

/// One operation and the segments of its path.
pub(crate) struct Route {
    pub(crate) operation: &'static Operation,
    pub(crate) segments: &'static [Segment],
}

/// A piece of a path between two `/`.
pub(crate) enum Segment {
    Literal(&'static str),
    /// Any non-empty text between the prefix and the suffix of the segment, without the characters of `without`. If it
    /// may contain a slash, it spans all remaining segments.
    Parameter {
        name: &'static str,
        before: &'static str,
        after: &'static str,
        without: &'static str,
    },
}
