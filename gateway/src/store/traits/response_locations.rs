//! Which upstream stores which response.

use super::StoreFuture;
use crate::store::history::{LocationChange, ResponseLocation};

/// The store that records which upstream stores which response.
pub(crate) trait LocationStore {
    /// All places, the oldest first. Their number is bounded.
    fn places(&self) -> StoreFuture<'_, Vec<ResponseLocation>>;

    /// The place of one response of an API key.
    fn place<'s>(&'s self, owner: &'s str, id: &'s str) -> StoreFuture<'s, Option<ResponseLocation>>;

    /// Applies changes in order.
    fn change_places<'s>(&'s self, changes: &'s [LocationChange]) -> StoreFuture<'s, ()>;
}
