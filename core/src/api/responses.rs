//! Hand-written methods of the responses types: shortcuts to read a response.

use serde_json::Value;

use crate::api::chunk::{PADDING, Varying};
use crate::api::types::ResponseStreamEvent;

impl ResponseStreamEvent {
    /// The new text, if this is an event with text.
    ///
    /// ```
    /// use gatewright::types::ResponseStreamEvent;
    ///
    /// let json = r#"{"type": "response.output_text.delta", "sequence_number": 4, "delta": "Hel"}"#;
    /// let event: ResponseStreamEvent = serde_json::from_str(json)?;
    /// assert_eq!(event.text_delta(), Some("Hel"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn text_delta(&self) -> Option<&str> {
        if self.type_ == "response.output_text.delta" { self.delta.as_deref() } else { None }
    }
}

impl Varying for ResponseStreamEvent {
    fn text_mut(&mut self) -> Option<&mut String> {
        self.delta.as_mut()
    }

    fn word_mut(&mut self) -> Option<&mut Value> {
        self.extra.get_mut(PADDING)
    }

    fn number_mut(&mut self) -> Option<&mut i64> {
        self.sequence_number.as_mut()
    }
}
