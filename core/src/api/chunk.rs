//! The item that an operation streams, and the response that its items add up to.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// An item that an operation streams, with the response that all items add up to.
///
/// ```no_run
/// use gatewright::{Chunk, Error, EventStream};
///
/// /// The whole response, whatever the protocol of the stream.
/// async fn whole<T: Chunk>(stream: EventStream<T>) -> Result<T::Whole, Error> {
///     Ok(stream.finish().await?.into_inner())
/// }
/// ```
pub trait Chunk: Varying {
    /// The response as it comes without streaming.
    type Whole: DeserializeOwned;
}

/// The part that differs between two items of a long stream; none if the type has no such member, or several.
pub trait Varying: Clone + DeserializeOwned + PartialEq + Unpin {
    /// The text itself.
    fn text_mut(&mut self) -> Option<&mut String>;

    /// The padding that makes all items equally long.
    fn word_mut(&mut self) -> Option<&mut Value> {
        None
    }

    /// A number that counts the items.
    fn number_mut(&mut self) -> Option<&mut i64> {
        None
    }
}

/// The member that pads an item; all services use the same name for it, and no type has it.
pub(super) const PADDING: &str = "obfuscation";
