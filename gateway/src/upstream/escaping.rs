//! Texts as they stand in an address.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// What a path segment may hold as it is.
pub(super) const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
