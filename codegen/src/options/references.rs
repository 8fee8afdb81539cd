//! The references in texts of `spec/options.json`, in braces: other options, error kinds.

use std::fmt;

/// A reference in braces in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reference<'a> {
    /// `{idle_timeout}`: of the same scope.
    Option(&'a str),
    /// `{client.idle_timeout}`.
    Other(&'a str, &'a str),
    /// `{error.pool_timeout}`.
    Error(&'a str),
    /// A brace that is not closed.
    Unread(&'a str),
}

impl fmt::Display for Reference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(name) => f.write_str(name),
            Self::Other(scope, name) => write!(f, "{scope}.{name}"),
            Self::Error(kind) => write!(f, "error.{kind}"),
            Self::Unread(text) => f.write_str(text),
        }
    }
}

/// A stretch of a text.
pub(crate) enum Piece<'a> {
    Plain(&'a str),
    Refers(Reference<'a>),
}

/// A text cut at its references. A doubled brace stands for itself.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        pieces.push(Piece::Plain(before));
        if from.starts_with("{{") || from.starts_with("}}") {
            pieces.push(Piece::Plain(&from[..1]));
            rest = &from[2..];
            continue;
        }
        let Some((inside, after)) = from[1..].split_once('}').filter(|_| from.starts_with('{')) else {
            pieces.push(Piece::Refers(Reference::Unread(from)));
            return pieces;
        };
        pieces.push(Piece::Refers(match inside.split_once('.') {
            Some(("error", kind)) => Reference::Error(kind),
            Some((scope, name)) => Reference::Other(scope, name),
            None => Reference::Option(inside),
        }));
        rest = after;
    }
    pieces.push(Piece::Plain(rest));
    pieces
}

/// All that a text refers to.
pub(crate) fn references(text: &str) -> Vec<Reference<'_>> {
    let refers = |piece| match piece {
        Piece::Refers(reference) => Some(reference),
        Piece::Plain(_) => None,
    };
    pieces(text).into_iter().filter_map(refers).collect()
}
