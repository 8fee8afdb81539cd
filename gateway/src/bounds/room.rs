//! One account of the memory that answers under way take, shared by all requests.
//!
//! Nobody waits for room: requests that each hold a part of what they need would wait for each other forever. The answers
//! of one key take no more than their part of it, so that they leave room for those of others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory that all answers may take together.
#[derive(Debug)]
pub(crate) struct Room {
    most: usize,
    taken: AtomicUsize,
}

/// What one answer takes of the room, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    room: Arc<Room>,
    holder: Option<Holder>,
    bytes: usize,
}

/// Whose answers have a part of the room.
#[derive(Debug)]
struct Holder {
    /// What all of them take.
    taken: Arc<AtomicUsize>,
    most: usize,
}

/// Why there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// All answers together take too much.
    Whole,
    /// Those of the same key do.
    Part,
}

impl Room {
    /// `most`: in bytes.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: AtomicUsize::new(0) })
    }

    /// A share of nothing yet.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share { room: Arc::clone(self), holder: None, bytes: 0 }
    }

    /// A share of nothing yet, of a holder whose shares take no more than so many hundredths of the room together.
    /// `taken`: what they take.
    pub(crate) fn share_of(self: &Arc<Self>, taken: &Arc<AtomicUsize>, hundredths: u8) -> Share {
        let count = usize::from(hundredths);
        let most = match hundredths {
            // Only the room itself is in its way.
            100.. => usize::MAX,
            // No product is too large.
            _ => self.most / 100 * count + self.most % 100 * count / 100,
        };
        let holder = Holder { taken: Arc::clone(taken), most };
        Share { room: Arc::clone(self), holder: Some(holder), bytes: 0 }
    }

    /// How much is taken, in bytes.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Share {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes so many bytes in all, more or fewer than before. Errors: there is no room for more; it takes as many as before.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if bytes <= self.bytes {
            self.give_back(self.bytes - bytes);
        } else {
            let more = bytes - self.bytes;
            if let Some(holder) = &self.holder {
                take(&holder.taken, more, holder.most).ok_or(NoRoom::Part)?;
            }
            if take(&self.room.taken, more, self.room.most).is_none() {
                if let Some(holder) = &self.holder {
                    holder.taken.fetch_sub(more, Ordering::Relaxed);
                }
                return Err(NoRoom::Whole);
            }
        }
        self.bytes = bytes;
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        if bytes > 0 {
            self.room.taken.fetch_sub(bytes, Ordering::Relaxed);
            if let Some(holder) = &self.holder {
                holder.taken.fetch_sub(bytes, Ordering::Relaxed);
            }
        }
    }
}

/// Takes more, if that is no more than `most` in all.
fn take(taken: &AtomicUsize, more: usize, most: usize) -> Option<usize> {
    let add = |taken: usize| taken.checked_add(more).filter(|taken| *taken <= most);
    taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_shares_together_take_no_more_than_there_is() {
        let room = Room::new(10);
        let (mut one, mut other) = (room.share(), room.share());
        assert_eq!((one.hold(6), other.hold(4), other.hold(5)), (Ok(()), Ok(()), Err(NoRoom::Whole)));
        assert_eq!(room.taken(), 10);
        assert_eq!((one.hold(5), other.hold(5), one.hold(usize::MAX)), (Ok(()), Ok(()), Err(NoRoom::Whole)));
        drop(one);
        assert_eq!(room.taken(), 5);
        drop(other);
        assert_eq!(room.taken(), 0);
    }

    #[test]
    fn the_shares_of_a_holder_take_no_more_than_its_part_together() {
        let room = Room::new(10);
        let (mine, others) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (mut one, mut two) = (room.share_of(&mine, 50), room.share_of(&mine, 50));
        let mut other = room.share_of(&others, 100);
        assert_eq!((one.hold(3), two.hold(3), two.hold(2)), (Ok(()), Err(NoRoom::Part), Ok(())));
        assert_eq!((other.hold(6), other.hold(5)), (Err(NoRoom::Whole), Ok(())));
        // What was refused was taken nowhere.
        assert_eq!((room.taken(), others.load(Ordering::Relaxed)), (10, 5));
        drop(one);
        assert_eq!((two.hold(5), mine.load(Ordering::Relaxed)), (Ok(()), 5));
        drop((two, other));
        assert_eq!((room.taken(), mine.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn a_part_of_any_room_is_less_than_all_of_it() {
        for (most, half) in [(0, 0), (1, 0), (99, 49), (199, 99), (usize::MAX, usize::MAX / 100 * 50)] {
            let (room, taken) = (Room::new(most), Arc::default());
            let mut share = room.share_of(&taken, 50);
            assert_eq!((share.hold(half), share.hold(most / 2 + 1)), (Ok(()), Err(NoRoom::Part)), "{most}");
            drop(share);
            assert_eq!(room.share_of(&taken, 100).hold(most), Ok(()));
        }
    }
}
