//! Stored responses, which later requests continue by `previous_response_id`: kept in memory, within limits.
//!
//! The gateway has a copy of a response, or knows the upstream that stores it, or both. Copies take space, so old ones are
//! evicted; if their upstream still has the response, its place remains known. With a durable store, both survive the
//! process (`history_keeper.rs`): memory then contains the responses that this process has not written yet, and those
//! requested recently.
//!
//! Documents are stored as JSON text, not as trees: a tree takes up to forty times the memory of its text, and the
//! limit would not match the memory used. Response and items are separate documents, so neither is nested deeper here
//! than in the request: whatever could be parsed once can be parsed again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gatewright_store::{LocationChange, MAX_PLACES, ResponseLocation, StoringUpstream};

/// Maximum number of copies.
const MAX_COPIES: usize = 1_000;
/// Maximum memory of all copies, in bytes.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Maximum size of a response and its items, in bytes.
pub(crate) const MAX_RESPONSE_BYTES: usize = 10 * 1024 * 1024;
/// Overhead of a response besides its documents, in bytes: its id and its table entries.
const OVERHEAD: usize = 256;
/// Maximum number of changes waiting for the spool: places and copies.
const MAX_UNSPOOLED: usize = 2 * MAX_PLACES;
/// Maximum length of an id from an upstream.
const MAX_ID_CHARS: usize = 128;

/// The stored responses by id.
pub(crate) struct History {
    state: Mutex<HistoryState>,
    /// Whether places survive the process.
    lasts: bool,
    /// Whether the places of the previous process have been loaded.
    is_complete: AtomicBool,
}

#[derive(Default)]
struct HistoryState {
    responses: HashMap<Arc<str>, StoredResponse>,
    /// Responses with a copy, by number: the oldest first.
    copies: BTreeMap<u64, Arc<str>>,
    /// Responses of which only the place is known.
    places: BTreeMap<u64, Arc<str>>,
    /// How many have been stored.
    count: u64,
    bytes: usize,
    /// Changes to be written.
    changes: Changes,
    /// Memory of the copies to be written.
    unwritten: usize,
    /// Changes that neither the store nor the spool has, by number. None: there is no spool.
    unspooled: Option<VecDeque<(u64, HistoryChange)>>,
    /// Number of deletions, by a byte that hashes the id.
    removals: HashMap<u8, u64>,
}

/// Changes that the store doesn't have yet.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) places: Vec<LocationChange>,
    pub(super) copies: Vec<CopyNote>,
    /// Number of changes so far.
    pub(super) count: u64,
}

/// A change to the set of copies.
#[derive(Debug, Clone)]
pub(super) enum CopyNote {
    Kept { owner: Arc<str>, id: Arc<str>, stamp: i64, documents: ResponseDocuments },
    Removed { owner: Arc<str>, id: Arc<str> },
}

/// A change of either kind.
#[derive(Debug, Clone)]
pub(super) enum HistoryChange {
    Place(LocationChange),
    Copy(CopyNote),
}

/// The store's result for the copy of a response.
pub(super) enum CopyLookup {
    None,
    /// The copy that is already known.
    Same,
    Other {
        stamp: i64,
        documents: ResponseDocuments,
    },
}

/// The local state of a response, before the store is queried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct CachedLookup {
    number: Option<u64>,
    removals: u64,
    /// The copy's stamp.
    pub(super) stamp: Option<i64>,
}

/// A response, and the id of the API key that owns it.
struct StoredResponse {
    owner: Arc<str>,
    number: u64,
    known: ResponseRecord,
}

/// The state of a response: its copy, and the upstream that stores it.
#[derive(Clone)]
pub(crate) struct ResponseRecord {
    pub(crate) documents: Option<ResponseDocuments>,
    /// None if no upstream stores it.
    pub(crate) holder: Option<StoringUpstream>,
    /// Distinguishes the copy from others with the same id. None: the store doesn't have it.
    stamp: Option<i64>,
}

/// A response and its input items, as JSON.
#[derive(Debug, Clone)]
pub(crate) struct ResponseDocuments {
    /// An object.
    pub(crate) response: Bytes,
    /// An array.
    pub(crate) items: Bytes,
    /// Memory of items and output once parsed, in bytes.
    pub(crate) tree: usize,
}

impl ResponseDocuments {
    /// The memory they take while a request continues them, in bytes.
    pub(crate) fn weight(&self) -> usize {
        self.response.len() + self.items.len() + self.tree
    }

    pub(super) fn size(&self) -> usize {
        OVERHEAD + self.response.len() + self.items.len()
    }
}

impl History {
    /// `lasts`: whether responses survive the process.
    pub(crate) fn new(lasts: bool) -> Self {
        Self { state: Mutex::default(), lasts, is_complete: AtomicBool::new(!lasts) }
    }

    pub(crate) fn lasts(&self) -> bool {
        self.lasts
    }

    /// Whether everything the previous process knew has been loaded.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Relaxed)
    }

    /// Loads what the previous process knew, the oldest first. Anything added since is newer.
    pub(crate) fn recall(&self, places: Vec<ResponseLocation>) {
        let mut state = self.lock();
        for ResponseLocation { id, owner, holder } in places {
            if !state.responses.contains_key(&id) {
                state.add(id, &owner, ResponseRecord { documents: None, holder: Some(holder), stamp: None });
            }
        }
        state.make_room();
        drop(state);
        self.is_complete.store(true, Ordering::Relaxed);
    }

    /// The changes since the last call.
    pub(super) fn take_changes(&self) -> Changes {
        let mut state = self.lock();
        let count = state.changes.count;
        std::mem::replace(&mut state.changes, Changes { count, ..Changes::default() })
    }

    /// From now on, changes are also recorded for a spool. `before`: the number of changes already in it.
    pub(super) fn spool(&self, before: u64) {
        let mut state = self.lock();
        state.changes.count += before;
        state.unspooled = Some(VecDeque::new());
    }

    /// The oldest change that neither the store nor the spool has, if it is among the first `count`. The spool then owns it.
    pub(super) fn next_unspooled(&self, count: u64) -> Option<(u64, HistoryChange)> {
        self.lock().unspooled.as_mut()?.pop_front_if(|(number, _)| *number <= count)
    }

    /// The store has the first `count` changes.
    pub(super) fn stored(&self, count: u64) {
        if let Some(unspooled) = &mut self.lock().unspooled {
            while unspooled.pop_front_if(|(number, _)| *number <= count).is_some() {}
        }
    }

    /// Number of changes so far.
    pub(crate) fn changed(&self) -> u64 {
        self.lock().changes.count
    }

    /// Frees the memory of a copy that was waiting to be written.
    pub(super) fn written(&self, bytes: usize) {
        let mut state = self.lock();
        state.unwritten = state.unwritten.saturating_sub(bytes);
    }

    fn lock(&self) -> MutexGuard<'_, HistoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a response of an API key: a copy, unless it is too large, and the upstream that has it. Old ones are
    /// evicted. Providers assign ids, too: an existing id is replaced, but never for another API key.
    pub(crate) fn keep(
        &self,
        owner: &Arc<str>,
        id: String,
        documents: Option<ResponseDocuments>,
        holder: Option<StoringUpstream>,
    ) {
        let documents = documents.filter(|documents| documents.size() <= MAX_RESPONSE_BYTES);
        // The id becomes part of an upstream path, and places must be small.
        let holder = holder.filter(|_| is_id(&id));
        if documents.is_none() && holder.is_none() {
            return;
        }
        let mut state = self.lock();
        if state.responses.get(id.as_str()).is_some_and(|stored| stored.owner != *owner) {
            return;
        }
        let before = state.remove(&id);
        let id: Arc<str> = id.into();
        match &holder {
            Some(holder) => {
                let place = ResponseLocation {
                    id: Arc::clone(&id),
                    owner: Arc::clone(owner),
                    holder: holder.clone(),
                };
                self.note_place(&mut state, LocationChange::Kept(place));
            }
            None if before.as_ref().is_some_and(|known| known.holder.is_some()) => {
                self.note_place(&mut state, LocationChange::Removed(Arc::clone(&id)));
            }
            None => {}
        }
        let stamp = match &documents {
            Some(documents) => self.note_copy(&mut state, owner, &id, documents),
            None => None,
        };
        if stamp.is_none() && before.is_some() {
            self.note_removal(&mut state, owner, &id);
        }
        state.add(id, owner, ResponseRecord { documents, holder, stamp });
        state.make_room();
    }

    /// If the changes aren't taken for a long time, further ones are dropped.
    fn note_place(&self, state: &mut HistoryState, change: LocationChange) {
        if self.lasts && state.changes.places.len() < MAX_PLACES {
            state.note(HistoryChange::Place(change));
        }
    }

    /// Returns the copy's stamp. None: it exists only here.
    fn note_copy(
        &self,
        state: &mut HistoryState,
        owner: &Arc<str>,
        id: &Arc<str>,
        documents: &ResponseDocuments,
    ) -> Option<i64> {
        let unwritten = state.unwritten + documents.size();
        if !self.lasts || !is_id(id) || unwritten > MAX_BYTES || state.changes.copies.len() >= MAX_PLACES {
            return None;
        }
        let (owner, id, stamp) = (Arc::clone(owner), Arc::clone(id), rand::random());
        state.note(HistoryChange::Copy(CopyNote::Kept { owner, id, stamp, documents: documents.clone() }));
        state.unwritten = unwritten;
        Some(stamp)
    }

    fn note_removal(&self, state: &mut HistoryState, owner: &Arc<str>, id: &Arc<str>) {
        if self.lasts && is_id(id) && state.changes.copies.len() < MAX_PLACES {
            state.note(HistoryChange::Copy(CopyNote::Removed {
                owner: Arc::clone(owner),
                id: Arc::clone(id),
            }));
        }
    }

    /// Deletes a response. Returns whether the API key had it.
    pub(crate) fn remove(&self, owner: &str, id: &str) -> bool {
        let mut state = self.lock();
        let theirs = state.responses.get_key_value(id).filter(|(_, stored)| *stored.owner == *owner);
        let Some((id, owner)) = theirs.map(|(id, stored)| (Arc::clone(id), Arc::clone(&stored.owner))) else {
            return false;
        };
        if state.remove(&id).is_some_and(|known| known.holder.is_some()) {
            self.note_place(&mut state, LocationChange::Removed(Arc::clone(&id)));
        }
        self.note_removal(&mut state, &owner, &id);
        *state.removals.entry(spread(&id)).or_default() += 1;
        true
    }

    /// The local state of an API key's response, before the store is queried.
    pub(super) fn glance(&self, owner: &str, id: &str) -> CachedLookup {
        let state = self.lock();
        let stored = state.responses.get(id).filter(|stored| *stored.owner == *owner);
        let known = stored.map(|stored| &stored.known).filter(|known| known.documents.is_some());
        let (number, stamp) = (stored.map(|stored| stored.number), known.and_then(|known| known.stamp));
        CachedLookup { number, removals: state.removals_of(id), stamp }
    }

    /// Learns the store's result for an API key's response. False, and nothing is learned, if the response may have been
    /// replaced or deleted here in the meantime, or its copy evicted.
    pub(super) fn learn(
        &self,
        owner: &str,
        id: &str,
        before: CachedLookup,
        holder: Option<StoringUpstream>,
        found: CopyLookup,
    ) -> bool {
        let mut state = self.lock();
        let stored = state.responses.get(id);
        if stored.is_some_and(|stored| *stored.owner != *owner) {
            return true;
        }
        if stored.map(|stored| stored.number) != before.number || state.removals_of(id) != before.removals {
            return false;
        }
        let known = state.remove(id);
        let (documents, stamp) = match (found, known) {
            (CopyLookup::Other { stamp, documents }, _) => (Some(documents), Some(stamp)),
            (CopyLookup::Same, Some(known)) => (known.documents, known.stamp),
            // The store never had this copy, so it can't know better.
            (_, Some(known)) if known.stamp.is_none() => (known.documents, None),
            _ => (None, None),
        };
        if documents.is_some() || holder.is_some() {
            state.add(id.into(), &owner.into(), ResponseRecord { documents, holder, stamp });
            state.make_room();
        }
        true
    }

    /// The state of an API key's response. Its documents are shared, not copied.
    pub(crate) fn get(&self, owner: &str, id: &str) -> Option<ResponseRecord> {
        let state = self.lock();
        let stored = state.responses.get(id).filter(|stored| *stored.owner == *owner)?;
        Some(stored.known.clone())
    }
}

impl HistoryState {
    fn note(&mut self, change: HistoryChange) {
        self.changes.count += 1;
        if let Some(unspooled) = &mut self.unspooled {
            unspooled.push_back((self.changes.count, change.clone()));
            // If neither accepts changes, the newest matter most.
            if unspooled.len() > MAX_UNSPOOLED {
                unspooled.pop_front();
            }
        }
        match change {
            HistoryChange::Place(change) => self.changes.places.push(change),
            HistoryChange::Copy(note) => self.changes.copies.push(note),
        }
    }

    fn add(&mut self, id: Arc<str>, owner: &Arc<str>, known: ResponseRecord) {
        let number = self.count;
        self.count += 1;
        let order = match &known.documents {
            Some(documents) => {
                self.bytes += documents.size();
                &mut self.copies
            }
            None => &mut self.places,
        };
        order.insert(number, Arc::clone(&id));
        self.responses.insert(id, StoredResponse { owner: Arc::clone(owner), number, known });
    }

    fn remove(&mut self, id: &str) -> Option<ResponseRecord> {
        let stored = self.responses.remove(id)?;
        if let Some(documents) = &stored.known.documents {
            self.bytes -= documents.size();
        }
        self.copies.remove(&stored.number);
        self.places.remove(&stored.number);
        Some(stored.known)
    }

    fn removals_of(&self, id: &str) -> u64 {
        self.removals.get(&spread(id)).copied().unwrap_or_default()
    }

    fn make_room(&mut self) {
        while self.copies.len() > MAX_COPIES || self.bytes > MAX_BYTES {
            let Some((_, id)) = self.copies.pop_first() else { break };
            let Some(stored) = self.responses.get_mut(&id) else { continue };
            if let Some(documents) = stored.known.documents.take() {
                self.bytes -= documents.size();
            }
            // Its upstream still has it. The number shows callers that the copy is gone.
            if stored.known.holder.is_some() {
                stored.number = self.count;
                self.count += 1;
                self.places.insert(stored.number, id);
            } else {
                self.responses.remove(&id);
            }
        }
        while self.places.len() > MAX_PLACES {
            let Some((_, id)) = self.places.pop_first() else { break };
            self.responses.remove(&id);
        }
    }
}

fn spread(id: &str) -> u8 {
    id.bytes().fold(0, |sum: u8, byte| sum.wrapping_mul(31).wrapping_add(byte))
}

/// Whether an id is small and may become part of an upstream path.
pub(super) fn is_id(id: &str) -> bool {
    (1..=MAX_ID_CHARS).contains(&id.len()) && id.bytes().all(is_plain)
}

/// Whether an id may contain a byte.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

#[cfg(test)]
mod tests;
