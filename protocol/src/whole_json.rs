//! Finds the end of a JSON object that arrives in pieces.

/// How far the object has been read. Text that isn't an object has no detectable end.
#[derive(Debug, Default)]
pub(super) struct WholeJson {
    depth: u64,
    is_text: bool,
    is_escaped: bool,
    is_whole: bool,
}

impl WholeJson {
    /// Adds the next piece.
    pub(super) fn push(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = self.is_text,
                b'"' => self.is_text = !self.is_text,
                _ if self.is_text => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    self.is_whole |= self.depth == 0;
                }
                _ => {}
            }
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether the object has started and its end is missing.
    pub(super) fn is_cut(&self) -> bool {
        self.depth > 0 && !self.is_whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_is_complete_at_its_closing_brace() {
        let json = r#" {"a":"}\"\\","b":[{}],"c":{}}"#;
        for cut in 0..json.len() {
            let mut whole = WholeJson::default();
            whole.push(&json[..cut]);
            assert!(!whole.is_whole(), "{cut}");
            assert_eq!(whole.is_cut(), cut > 1, "{cut}");
            whole.push(&json[cut..]);
            assert!(whole.is_whole() && !whole.is_cut(), "{cut}");
        }
        let mut none = WholeJson::default();
        none.push("}] \"{\" 1");
        assert!(!none.is_whole() && !none.is_cut());
    }
}
