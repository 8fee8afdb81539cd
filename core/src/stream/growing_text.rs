//! A text that arrives in pieces, and the JSON value that it begins.

use serde_json::Value;

use super::json_prefix::JsonPrefix;

/// A text so far.
#[derive(Debug)]
pub(super) struct GrowingText {
    text: String,
    /// Where the newest piece begins.
    newest: usize,
    /// None if the text is not read as JSON.
    json: Option<JsonPrefix>,
}

impl GrowingText {
    pub(super) fn new(is_json: bool) -> Self {
        Self { text: String::new(), newest: 0, json: is_json.then(JsonPrefix::default) }
    }

    pub(super) fn push(&mut self, piece: &str) {
        self.newest = self.text.len();
        self.text.push_str(piece);
        if let Some(json) = &mut self.json {
            json.push(piece);
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The piece that was added last.
    pub(super) fn newest(&self) -> &str {
        &self.text[self.newest..]
    }

    /// The value so far, if the text is read as JSON and one has started.
    pub(super) fn value(&self) -> Option<&Value> {
        self.json.as_ref()?.value()
    }

    /// The text if it ends here, and its value: none unless all of it is JSON, and read as such.
    pub(super) fn whole(&mut self) -> (&str, Option<&Value>) {
        (&self.text, self.json.as_mut().and_then(JsonPrefix::whole))
    }
}
