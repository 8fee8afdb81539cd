//! The item that an operation streams, and the response that all of its items amount to.

use serde::de::DeserializeOwned;

/// An item that an operation streams, with the response that all items together amount to.
pub trait Chunk: DeserializeOwned {
    /// The response as it comes without streaming.
    type Whole: DeserializeOwned;
}
