//! The configuration that gateways share: a document, each change of which is a revision.

use std::pin::Pin;

use super::Stored;

/// How many revisions are kept, the newest ones.
pub(crate) const MOST_REVISIONS: usize = 100;

/// A revision, without its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigRevision {
    /// From 1. A later one has a higher number.
    pub(crate) number: u64,
    /// In seconds since 1970.
    pub(crate) made: u64,
    /// Who made it, as they say.
    pub(crate) author: String,
    /// The revision whose document was taken again.
    pub(crate) repeats: Option<u64>,
}

/// A document that becomes a revision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewConfig<'n> {
    pub(crate) made: u64,
    pub(crate) author: &'n str,
    pub(crate) repeats: Option<u64>,
    pub(crate) document: &'n str,
}

/// The store of the configuration that gateways share.
pub(crate) trait ConfigStore {
    /// Waits until another process may have added a revision. A store that is told of nothing waits without end: whoever waits
    /// looks from time to time. One waits at a time.
    fn config_changed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    /// The revisions, the newest first, at most [`MOST_REVISIONS`].
    fn config_revisions(&self, most: usize) -> Stored<'_, Vec<ConfigRevision>>;

    /// The document of a revision, if it is kept.
    fn config_document(&self, number: u64) -> Stored<'_, Option<String>>;

    /// Adds a revision, and forgets the oldest ones beyond [`MOST_REVISIONS`]. Returns its number, or, where `after` is given
    /// and another revision is the newest, nothing; 0 stands for none.
    fn add_config<'s>(&'s self, new: NewConfig<'s>, after: Option<u64>) -> Stored<'s, Option<u64>>;
}
