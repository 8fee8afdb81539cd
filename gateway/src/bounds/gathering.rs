//! Collects a body that arrives in pieces, within the memory budget.

use bytes::{Bytes, BytesMut};

use super::memory_budget::{Reservation, ReservationError};

/// The part of a body that has arrived. A single piece is not copied. Several pieces are, so that none keeps its read
/// buffer alive: the sender decides how small the pieces are.
#[derive(Debug)]
pub(crate) struct Gathering<'s> {
    share: &'s mut Reservation,
    /// The size of the reservation before.
    base: usize,
    /// The maximum length of the body.
    most: usize,
    first: Bytes,
    rest: Vec<u8>,
}

impl<'s> Gathering<'s> {
    /// `share`: reserves the memory of the body, by capacity. `most`: the maximum length that the caller permits.
    pub(crate) fn new(share: &'s mut Reservation, most: usize) -> Self {
        Self { base: share.bytes(), share, most, first: Bytes::new(), rest: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.first.len().max(self.rest.len())
    }

    /// Appends a piece. Errors: there is no memory for it.
    pub(crate) fn push(&mut self, piece: Bytes) -> Result<(), ReservationError> {
        if self.len() == 0 {
            self.share.hold(self.base.saturating_add(piece.len()))?;
            self.first = piece;
            return Ok(());
        }
        let length = self.len() + piece.len();
        if length > self.rest.capacity() {
            // At most the whole body, but large enough that the buffer rarely grows.
            let capacity = (2 * self.rest.capacity()).min(self.most).max(length);
            self.share.hold(self.base.saturating_add(self.first.len()).saturating_add(capacity))?;
            self.rest.reserve_exact(capacity - self.rest.len());
        }
        if self.rest.is_empty() {
            self.rest.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.rest.extend_from_slice(&piece);
        Ok(())
    }

    /// The whole body.
    pub(crate) fn finish(self) -> Bytes {
        if self.rest.is_empty() {
            return self.first;
        }
        // Shrinks the reservation: the first piece has been dropped.
        _ = self.share.hold(self.base.saturating_add(self.rest.capacity()));
        self.rest.into()
    }
}

/// The maximum capacity of a buffer once `more` bytes have been appended.
pub(crate) fn capacity_with(buffer: &BytesMut, more: usize) -> usize {
    let length = buffer.len() + more;
    if length <= buffer.capacity() { buffer.capacity() } else { length.max(2 * buffer.capacity()) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::memory_budget::MemoryBudget;
    use super::*;

    /// A chunk that is a small slice of the memory it keeps alive. Counts the live ones.
    struct Piece([u8; 1], Arc<AtomicUsize>);

    impl AsRef<[u8]> for Piece {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    impl Drop for Piece {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn small_chunks_do_not_retain_their_read_buffers() {
        const PIECES: usize = 10_000;
        let budget = MemoryBudget::new(2 * PIECES);
        let (mut share, living) = (budget.share(), Arc::new(AtomicUsize::new(0)));
        let mut gathering = Gathering::new(&mut share, PIECES);
        for _ in 0..PIECES {
            living.fetch_add(1, Ordering::Relaxed);
            gathering.push(Bytes::from_owner(Piece(*b"x", Arc::clone(&living)))).expect("room");
            assert!(living.load(Ordering::Relaxed) <= 1);
        }
        assert_eq!(gathering.finish().len(), PIECES);
        assert_eq!(budget.taken(), PIECES, "the exact capacity");
    }

    #[test]
    fn single_chunk_is_not_copied() {
        let mut share = MemoryBudget::new(100).share();
        let whole = Bytes::from(vec![7; 100]);
        let mut gathering = Gathering::new(&mut share, 1_000);
        gathering.push(whole.clone()).expect("room");
        assert_eq!(gathering.finish().as_ptr(), whole.as_ptr());
        assert_eq!(share.bytes(), 100);
    }

    #[test]
    fn memory_is_reserved_before_it_is_allocated() {
        let budget = MemoryBudget::new(1_000);
        let mut share = budget.share();
        let mut gathering = Gathering::new(&mut share, 10_000);
        let piece = || Bytes::from_static(&[7; 100]);
        while gathering.push(piece()).is_ok() {}
        assert!(gathering.rest.capacity() <= 1_000 && gathering.len() >= 400, "{}", gathering.len());
        drop(share);
        assert_eq!(budget.taken(), 0);
    }
}
