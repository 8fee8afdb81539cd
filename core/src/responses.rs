//! What the responses protocol's types offer by hand: short ways to write a request and to read an answer.

use crate::types::{Response, ResponseRequest, ResponseRequestInput, ResponseStreamEvent};

impl ResponseRequest {
    /// A request with its required fields (2.4); the others are public fields.
    #[expect(clippy::missing_panics_doc, reason = "all that is required is given")]
    pub fn new(model: impl Into<String>, input: impl Into<ResponseRequestInput>) -> Self {
        let request = Self::builder().model(model.into()).input(input.into());
        request.try_into().expect("all that a request needs is given")
    }
}

impl Response {
    /// The text of all messages of the output, joined.
    pub fn output_text(&self) -> String {
        let messages = self.output.iter().filter(|item| item.type_ == "message");
        let parts = messages.flat_map(|item| &item.content).filter(|part| part.type_ == "output_text");
        parts.filter_map(|part| part.text.as_deref()).collect()
    }
}

impl ResponseStreamEvent {
    /// The new text, where this is the event that brings some.
    pub fn text_delta(&self) -> Option<&str> {
        if self.type_ == "response.output_text.delta" { self.delta.as_deref() } else { None }
    }
}
