//! Bytes as JavaScript text.

/// Bytes as text. Those that are not UTF-8 become U+FFFD.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
