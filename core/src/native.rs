//! What the native protocol's types offer by hand: short ways to write a request and to read an answer.

use crate::types::{GenerateContentRequest, GenerateContentResponse, NativeContent, NativePart};

impl From<&str> for NativePart {
    fn from(text: &str) -> Self {
        Self::builder().text(Some(text.to_owned())).try_into().expect("a part needs nothing")
    }
}

impl GenerateContentRequest {
    /// A request of one turn with one text (2.5); the other fields are public.
    #[expect(clippy::missing_panics_doc, reason = "all that is required is given")]
    pub fn new(text: &str) -> Self {
        let turn: NativeContent = NativeContent::builder()
            .parts(vec![text.into()])
            .try_into()
            .expect("all that a turn needs is given");
        Self::builder().contents(vec![turn]).try_into().expect("all that a request needs is given")
    }
}

impl GenerateContentResponse {
    /// The text of the first candidate's parts, joined, its thoughts left out.
    pub fn text(&self) -> String {
        let content = self.candidates.first().and_then(|candidate| candidate.content.as_ref());
        let parts = content.into_iter().flat_map(|content| &content.parts);
        parts.filter(|part| part.thought != Some(true)).filter_map(|part| part.text.as_deref()).collect()
    }
}
