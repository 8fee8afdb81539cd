//! The building blocks of the generated shapes: the kind of each value and the members of each object. The shapes themselves
//! are generated (`generated/shapes.rs`); `stream/shape.rs` checks and repairs values by them.

/// The kind of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Any,
    /// A string; the given one replaces a required string that is missing.
    Text(&'static str),
    Integer,
    /// An integer; its position in the list if it is missing.
    Position,
    Number,
    Flag,
    /// An object that has these members and may have others.
    Object(&'static [Member]),
    /// An object whose values are all of one shape.
    Map(&'static Shape),
    List(&'static Shape),
}

/// A member of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) shape: &'static Shape,
    pub(crate) presence: Presence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Present and not null.
    Required,
    /// Present, possibly null.
    Stated,
    /// Not null if present.
    Optional,
    /// May be missing or null.
    Nullable,
}

impl Shape {
    /// Whether code that reads an item iterates over such a value and fails if it is missing.
    pub(crate) fn is_structure(&self) -> bool {
        matches!(self, Self::Object(_) | Self::List(_) | Self::Position)
    }
}

impl Member {
    pub(crate) fn may_be_null(&self) -> bool {
        matches!(self.presence, Presence::Stated | Presence::Nullable) || !self.shape.is_structure()
    }

    pub(crate) fn may_be_missing(&self) -> bool {
        self.presence != Presence::Required || !self.shape.is_structure()
    }
}
