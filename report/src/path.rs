//! The path from the root of a document to a value, which is converted to a pointer only for a finding.

use std::borrow::Cow;

use crate::finding::pointer_of;

/// A step, and the path to it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Path<'a> {
    Root,
    Item(&'a Path<'a>, usize),
    Member(&'a Path<'a>, &'a str),
}

impl<'a> Path<'a> {
    /// Its JSON Pointer.
    pub(crate) fn pointer(&'a self) -> String {
        let mut steps = Vec::new();
        let mut here = self;
        loop {
            here = match here {
                Path::Root => break,
                Path::Item(parent, index) => {
                    steps.push(Cow::Owned(index.to_string()));
                    parent
                }
                Path::Member(parent, name) => {
                    steps.push(Cow::Borrowed(*name));
                    parent
                }
            };
        }
        pointer_of(steps.into_iter().rev())
    }
}
