//! One account of the memory that answers under way take, shared by all requests.
//!
//! Nobody waits for room: requests that each hold a part of what they need would wait for each other forever.

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
    bytes: usize,
}

/// Others take too much of the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoRoom;

impl Room {
    /// `most`: in bytes.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: AtomicUsize::new(0) })
    }

    /// A share of nothing yet.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share { room: Arc::clone(self), bytes: 0 }
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
        if let Some(fewer) = self.bytes.checked_sub(bytes) {
            if fewer > 0 {
                self.room.taken.fetch_sub(fewer, Ordering::Relaxed);
            }
        } else {
            let more = bytes - self.bytes;
            let take = |taken: usize| taken.checked_add(more).filter(|taken| *taken <= self.room.most);
            self.room.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).map_err(|_| NoRoom)?;
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_shares_together_take_no_more_than_there_is() {
        let room = Room::new(10);
        let (mut one, mut other) = (room.share(), room.share());
        assert_eq!((one.hold(6), other.hold(4), other.hold(5)), (Ok(()), Ok(()), Err(NoRoom)));
        assert_eq!(room.taken(), 10);
        assert_eq!((one.hold(5), other.hold(5), one.hold(usize::MAX)), (Ok(()), Ok(()), Err(NoRoom)));
        drop(one);
        assert_eq!(room.taken(), 5);
        drop(other);
        assert_eq!(room.taken(), 0);
    }
}
