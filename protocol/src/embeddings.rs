//! Embeddings at providers whose requests for them differ from those of clients.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::conversation::{JsonPointer, Protocol};
use crate::{EncodedRequest, MalformedDocument};

/// How a protocol asks for embeddings.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddingsCodec {
    /// A valid request for the provider's model. Errors: where the request has what the protocol has no member for.
    pub request: fn(&Value, model: &str) -> Result<EncodedRequest, JsonPointer>,
    /// Reads an answer. Errors: it has no vectors, or a list of more than `max`.
    pub answer:
        for<'a> fn(document: &'a str, max: usize) -> Result<ProviderEmbeddings<'a>, MalformedDocument>,
}

/// An answer, of which the vectors stay text.
#[derive(Debug)]
pub struct ProviderEmbeddings<'a> {
    /// In the order of the inputs; each is an array of numbers.
    pub vectors: Vec<&'a RawValue>,
    /// Tokens of the inputs; not every provider counts them.
    pub input_tokens: Option<u64>,
    /// Members of the answer that clients of embeddings have no member for, by their places.
    pub extra: Vec<(JsonPointer, &'a RawValue)>,
}

impl Protocol {
    /// How embeddings are requested of its providers. `None`: in the form of the client's request.
    pub fn embeddings(self) -> Option<EmbeddingsCodec> {
        self.codec().embeddings()
    }
}
