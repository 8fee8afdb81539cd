//! Reads documents written one per line as their bytes arrive.

use gatewright::DEFAULT_MAX_BODY_BYTES;
use gatewright::report::Splitter;
use napi_derive::napi;

use crate::text::text;

/// Maximum length of a line, in bytes: the default maximum size of a response.
const MAX_LINE_BYTES: usize = DEFAULT_MAX_BODY_BYTES;

/// Splits bytes into non-blank lines; see the core's `Splitter`.
#[napi(js_name = "EngineLines")]
pub struct Lines {
    splitter: Splitter,
    max_bytes: usize,
}

#[napi]
impl Lines {
    /// Nothing has arrived yet. A byte order mark at the beginning is dropped.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self { splitter: Splitter::new(MAX_LINE_BYTES).without_mark(), max_bytes: MAX_LINE_BYTES }
    }

    /// Maximum length of a line, in bytes.
    #[napi(getter)]
    pub fn max_bytes(&self) -> f64 {
        u32::try_from(self.max_bytes).unwrap_or(u32::MAX).into()
    }

    /// The lines that end within the next bytes; nothing if one is too long.
    #[napi]
    pub fn take(&mut self, mut bytes: &[u8]) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        while let Some(line) = self.splitter.next_line(&mut bytes) {
            if line.bytes.len() > self.max_bytes {
                return None;
            }
            lines.push(text(&line.bytes));
        }
        (!self.splitter.is_over()).then_some(lines)
    }

    /// The last line, if no line break ends it.
    #[napi]
    pub fn finish(&mut self) -> Vec<String> {
        self.splitter.finish().iter().map(|line| text(&line.bytes)).collect()
    }
}
