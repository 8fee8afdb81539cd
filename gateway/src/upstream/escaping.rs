//! Escaping of texts in URLs.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// Characters that a path segment may contain unescaped.
pub(super) const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
