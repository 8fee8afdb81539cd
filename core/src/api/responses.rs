//! Hand-written methods of the responses types: shortcuts to read a response.

use crate::api::types::ResponseStreamEvent;

impl ResponseStreamEvent {
    /// The new text, if this is an event with text.
    pub fn text_delta(&self) -> Option<&str> {
        if self.type_ == "response.output_text.delta" { self.delta.as_deref() } else { None }
    }
}
