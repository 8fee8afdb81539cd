//! Which upstream stores which response.

use super::Stored;
use crate::store::history::{Change, Place};

/// The store of the places of responses.
pub(crate) trait PlaceStore {
    /// All places, the oldest first. Their number is bounded.
    fn places(&self) -> Stored<'_, Vec<Place>>;

    /// The place of one response of an API key.
    fn place<'s>(&'s self, owner: &'s str, id: &'s str) -> Stored<'s, Option<Place>>;

    /// Takes changes over, in their order.
    fn change_places<'s>(&'s self, changes: &'s [Change]) -> Stored<'s, ()>;
}
