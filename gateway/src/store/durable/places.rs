//! Which upstream stores which response.

use super::Stored;
use crate::store::history::{Change, Place};

/// The store that records which upstream stores which response.
pub(crate) trait PlaceStore {
    /// All places, the oldest first. Their number is bounded.
    fn places(&self) -> Stored<'_, Vec<Place>>;

    /// The place of one response of an API key.
    fn place<'s>(&'s self, owner: &'s str, id: &'s str) -> Stored<'s, Option<Place>>;

    /// Applies changes in order.
    fn change_places<'s>(&'s self, changes: &'s [Change]) -> Stored<'s, ()>;
}
