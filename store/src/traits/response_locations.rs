//! Which upstream stores which response.

use std::sync::Arc;

use super::StoreFuture;

/// Maximum number of responses of which only the place is known: some 40 MB.
pub const MAX_PLACES: usize = 100_000;

/// The upstream that stores a response.
#[derive(Debug, Clone)]
pub struct StoringUpstream {
    /// Name of the upstream.
    pub upstream: Arc<str>,
    /// The mark of the upstream key that it was made with.
    pub key: Option<i64>,
    /// The model as the client named it.
    pub model: Arc<str>,
}

/// Where a response is stored.
#[derive(Debug, Clone)]
pub struct ResponseLocation {
    /// Id of the response.
    pub id: Arc<str>,
    /// The id of the API key that owns it.
    pub owner: Arc<str>,
    /// The upstream that has it.
    pub holder: StoringUpstream,
}

/// A change to the known places.
#[derive(Debug, Clone)]
pub enum LocationChange {
    /// A response is stored there.
    Kept(ResponseLocation),
    /// The response with this id is deleted.
    Removed(Arc<str>),
}

/// The store that records which upstream stores which response.
pub trait LocationStore {
    /// All places, the oldest first. Their number is bounded.
    fn places(&self) -> StoreFuture<'_, Vec<ResponseLocation>>;

    /// The place of one response of an API key.
    fn place<'s>(&'s self, owner: &'s str, id: &'s str) -> StoreFuture<'s, Option<ResponseLocation>>;

    /// Applies changes in order.
    fn change_places<'s>(&'s self, changes: &'s [LocationChange]) -> StoreFuture<'s, ()>;
}
