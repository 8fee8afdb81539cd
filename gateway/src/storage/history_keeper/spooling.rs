//! Changes of stored responses in the spool: those that the store did not accept in time, and those that earlier processes
//! left behind.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use gatewright_store::{
    COPIES_KEPT_FOR, Copy, CopyChange, EntryKind, LocationChange, ResponseLocation, Spool, SpoolEntry,
    StoreError, StoringUpstream,
};
use gatewright_system::clock::{millis, unix_millis};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::{BATCH, HistoryKeeper, copies};
use crate::storage::history::HistoryChange;

/// See the module.
pub(super) struct Spooling {
    spool: Arc<Spool>,
    /// Locked while more are written: a later caller then finds them done.
    items: Mutex<SpoolEntries>,
}

/// Items, with the number of the last change in each.
#[derive(Default)]
struct SpoolEntries {
    entries: Vec<(u64, SpoolEntry)>,
    /// Changes that the spool could not accept.
    refused: Option<(u64, Bytes)>,
}

/// What an earlier process left behind.
pub(super) struct RecoveredChanges {
    pub(super) copies: Vec<CopyChange>,
    pub(super) places: Vec<LocationChange>,
    entry: SpoolEntry,
}

/// The format of changes in an item: a line of JSON, and the contents of the copies.
#[derive(Default)]
struct SpooledChanges {
    lines: Vec<ChangeLine>,
    contents: Vec<u8>,
}

/// A change, in the order of the changes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ChangeLine {
    Copy { owner: String, id: String, stamp: i64, kept: u64, bytes: usize },
    NoCopy { owner: String, id: String },
    Place { owner: String, id: String, upstream: String, key: Option<i64>, model: String },
    NoPlace { id: String },
}

impl Spooling {
    pub(super) fn new(spool: Arc<Spool>) -> Self {
        Self { spool, items: Mutex::default() }
    }

    /// What earlier processes left behind, the oldest first.
    pub(super) fn left(&self) -> VecDeque<RecoveredChanges> {
        let all = self.spool.inherited(EntryKind::Changes).into_iter().filter_map(|one| {
            let changes = read(&one.content);
            if changes.is_none() {
                one.leave("it has no changes of stored responses");
            }
            let (copies, places) = changes?;
            Some(RecoveredChanges { copies, places, entry: one.entry })
        });
        all.collect()
    }

    /// Removes the items that the store now has.
    pub(super) async fn stored(&self, count: u64) {
        let mut items = self.items.lock().await;
        items.refused.take_if(|(last, _)| *last <= count);
        let stored = items.entries.extract_if(.., |(last, _)| *last <= count).map(|(_, item)| item).collect();
        drop(items);
        SpoolEntry::remove_all(stored).await;
    }
}

impl HistoryKeeper {
    /// Spools the changes that neither the spool nor the store has, after waiting for concurrent callers to do the same.
    /// What the spool can't accept is retried first next time, because the order of changes matters.
    pub(super) async fn save(&self) {
        let Some(spooling) = &self.spooling else { return };
        let count = self.history.changed();
        let mut items = spooling.items.lock().await;
        loop {
            let next = match items.refused.take() {
                Some(refused) => Some(refused),
                None => self.next_item(count).await,
            };
            let Some((number, content)) = next else { return };
            let Some(written) = spooling.spool.keep(EntryKind::Changes, content.clone()).await else {
                items.refused = Some((number, content));
                return;
            };
            items.entries.push((number, written));
        }
    }

    /// The next of the first `count` changes as one item, with the number of the last one.
    async fn next_item(&self, count: u64) -> Option<(u64, Bytes)> {
        let (mut item, mut last) = (SpooledChanges::default(), None);
        while item.contents.len() < BATCH
            && let Some((number, change)) = self.history.next_unspooled(count)
        {
            match change {
                HistoryChange::Place(change) => item.add_place(&change),
                HistoryChange::Copy(note) => item.add_copy(&copies::sealed(&self.sealer, note).await),
            }
            last = Some(number);
        }
        last.map(|number| (number, item.written().into()))
    }

    /// Whether changes that the store does not accept are on the disk.
    pub(crate) fn is_spooled(&self) -> bool {
        self.spooling.as_ref().is_some_and(|spooling| spooling.spool.works())
    }

    /// Hands the store what earlier processes left behind.
    pub(super) async fn hand_over(&self, left: &mut VecDeque<RecoveredChanges>) -> Result<(), StoreError> {
        while let Some(one) = left.front() {
            self.store.change_copies(&one.copies).await?;
            self.store.change_places(&one.places).await?;
            one.entry.remove().await;
            left.pop_front();
        }
        Ok(())
    }
}

impl RecoveredChanges {
    pub(super) fn changes(&self) -> u64 {
        (self.copies.len() + self.places.len()) as u64
    }
}

impl SpooledChanges {
    fn add_copy(&mut self, change: &CopyChange) {
        let text = |text: &Arc<str>| text.to_string();
        self.lines.push(match change {
            CopyChange::Kept(Copy { owner, id, stamp, kept, content }) => {
                self.contents.extend_from_slice(content);
                let bytes = content.len();
                ChangeLine::Copy { owner: text(owner), id: text(id), stamp: *stamp, kept: *kept, bytes }
            }
            CopyChange::Removed { owner, id } => ChangeLine::NoCopy { owner: text(owner), id: text(id) },
        });
    }

    fn add_place(&mut self, change: &LocationChange) {
        let text = |text: &Arc<str>| text.to_string();
        self.lines.push(match change {
            LocationChange::Kept(ResponseLocation {
                id,
                owner,
                holder: StoringUpstream { upstream, key, model },
            }) => ChangeLine::Place {
                owner: text(owner),
                id: text(id),
                upstream: text(upstream),
                key: *key,
                model: text(model),
            },
            LocationChange::Removed(id) => ChangeLine::NoPlace { id: text(id) },
        });
    }

    fn written(self) -> Vec<u8> {
        let mut content = serde_json::to_vec(&self.lines).expect("texts and numbers");
        content.push(b'\n');
        content.extend_from_slice(&self.contents);
        content
    }
}

/// The changes of an item, except copies that are too old. None: its content is something else.
fn read(content: &[u8]) -> Option<(Vec<CopyChange>, Vec<LocationChange>)> {
    let end = memchr::memchr(b'\n', content)?;
    let (lines, mut contents) = (&content[..end], &content[end + 1..]);
    let kept_after = unix_millis().saturating_sub(millis(COPIES_KEPT_FOR));
    let (mut copies, mut places) = (Vec::new(), Vec::new());
    for line in serde_json::from_slice::<Vec<ChangeLine>>(lines).ok()? {
        match line {
            ChangeLine::Copy { owner, id, stamp, kept, bytes } => {
                let (content, rest) = contents.split_at_checked(bytes)?;
                contents = rest;
                let (owner, id, content) = (owner.into(), id.into(), content.to_vec());
                if kept > kept_after {
                    copies.push(CopyChange::Kept(Copy { owner, id, stamp, kept, content }));
                }
            }
            ChangeLine::NoCopy { owner, id } => {
                copies.push(CopyChange::Removed { owner: owner.into(), id: id.into() });
            }
            ChangeLine::Place { owner, id, upstream, key, model } => {
                let holder = StoringUpstream { upstream: upstream.into(), key, model: model.into() };
                places.push(LocationChange::Kept(ResponseLocation {
                    id: id.into(),
                    owner: owner.into(),
                    holder,
                }));
            }
            ChangeLine::NoPlace { id } => places.push(LocationChange::Removed(id.into())),
        }
    }
    Some((copies, places))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn spooled_changes_round_trip_without_expired_copies() {
        let copy = |id: &str, kept: u64, content: &[u8]| {
            let (owner, id, content) = ("key".into(), id.into(), content.to_vec());
            CopyChange::Kept(Copy { owner, id, stamp: -7, kept, content })
        };
        let (now, too_long) = (unix_millis(), millis(COPIES_KEPT_FOR + Duration::from_secs(1)));
        let mut item = SpooledChanges::default();
        item.add_copy(&copy("a", now, b"one\n"));
        item.add_copy(&copy("old", now - too_long, b"old"));
        item.add_copy(&CopyChange::Removed { owner: "key".into(), id: "b".into() });
        item.add_copy(&copy("c", now, b""));
        item.add_copy(&copy("d", now, b"two"));
        let holder = StoringUpstream { upstream: "one".into(), key: Some(2), model: "mine".into() };
        item.add_place(&LocationChange::Kept(ResponseLocation {
            id: "a".into(),
            owner: "key".into(),
            holder,
        }));
        item.add_place(&LocationChange::Removed("b".into()));
        let written = item.written();
        let (copies, places) = read(&written).expect("changes");
        let shown = |change: &CopyChange| match change {
            CopyChange::Kept(copy) => (copy.id.to_string(), copy.stamp, copy.kept, copy.content.clone()),
            CopyChange::Removed { id, .. } => (id.to_string(), 0, 0, b"removed".to_vec()),
        };
        let expected = [
            ("a".to_owned(), -7, now, b"one\n".to_vec()),
            ("b".to_owned(), 0, 0, b"removed".to_vec()),
            ("c".to_owned(), -7, now, Vec::new()),
            ("d".to_owned(), -7, now, b"two".to_vec()),
        ];
        assert_eq!(copies.iter().map(shown).collect::<Vec<_>>(), expected);
        let [LocationChange::Kept(place), LocationChange::Removed(id)] = &places[..] else {
            panic!("{places:?}")
        };
        assert_eq!((&*place.id, &*place.owner, place.holder.key, &**id), ("a", "key", Some(2), "b"));
        assert_eq!((&*place.holder.upstream, &*place.holder.model), ("one", "mine"));
        for broken in [&written[..written.len() - 1], b"", b"[]", b"{}\n"] {
            assert!(read(broken).is_none());
        }
    }
}
