//! The building blocks of the generated forms: the kind of each value and the members of each object. The forms themselves
//! are generated (`generated/forms.rs`); `stream/shape.rs` checks and repairs values by them.

/// The kind of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
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
    /// An object whose values are all of one form.
    Map(&'static Form),
    List(&'static Form),
}

/// A member of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) form: &'static Form,
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

impl Form {
    /// Whether code that reads an item iterates over such a value and fails if it is missing.
    pub(crate) fn is_structure(&self) -> bool {
        matches!(self, Self::Object(_) | Self::List(_) | Self::Position)
    }
}

impl Member {
    pub(crate) fn may_be_null(&self) -> bool {
        matches!(self.presence, Presence::Stated | Presence::Nullable) || !self.form.is_structure()
    }

    pub(crate) fn may_be_missing(&self) -> bool {
        self.presence != Presence::Required || !self.form.is_structure()
    }
}
