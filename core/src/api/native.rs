//! Hand-written methods of the native types: shortcuts to build a request and to read a response.

use crate::api::chunk::Varying;
use crate::api::types::{GenerateContentRequest, GenerateContentResponse, NativeContent, NativePart};

impl From<&str> for NativePart {
    fn from(text: &str) -> Self {
        Self::default().with_text(text)
    }
}

impl GenerateContentRequest {
    /// A request of one turn with one text; the other fields are public.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::types::GenerateContentRequest;
    ///
    /// let request = GenerateContentRequest::new("Say hello.");
    /// let response = client.native().generate_content("model-luna", &request).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(text: &str) -> Self {
        Self::required(vec![NativeContent::new(vec![text.into()])])
    }
}

impl GenerateContentResponse {
    /// The joined text of the first candidate's parts, without its thoughts.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::types::GenerateContentRequest;
    ///
    /// let request = GenerateContentRequest::new("Say hello.");
    /// println!("{}", client.native().generate_content("model-luna", &request).await?.text());
    /// # Ok(())
    /// # }
    /// ```
    pub fn text(&self) -> String {
        let content = self.candidates.first().and_then(|candidate| candidate.content.as_ref());
        let parts = content.into_iter().flat_map(|content| &content.parts);
        parts.filter(|part| part.thought != Some(true)).filter_map(|part| part.text.as_deref()).collect()
    }
}

impl Varying for GenerateContentResponse {
    fn text_mut(&mut self) -> Option<&mut String> {
        let [candidate] = self.candidates.as_mut_slice() else { return None };
        let [part] = candidate.content.as_mut()?.parts.as_mut_slice() else { return None };
        part.text.as_mut()
    }
}
