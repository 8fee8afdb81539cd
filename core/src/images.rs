//! What the image types offer by hand: a short way to write a request.

use crate::types::ImageGenerationRequest;

impl ImageGenerationRequest {
    /// A request with its required fields (2.8); the others are public fields.
    #[expect(clippy::missing_panics_doc, reason = "all that is required is given")]
    pub fn new(model: impl Into<String>, prompt: impl Into<String>) -> Self {
        let request = Self::builder().model(model.into()).prompt(prompt.into());
        request.try_into().expect("all that a request needs is given")
    }
}
