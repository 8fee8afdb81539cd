//! Accounts for the memory that requests and answers in progress use, by capacity. All requests share one budget.
//!
//! A reservation fails instead of waiting: requests that each hold part of the memory they need would deadlock. The
//! requests of one key use at most their share, so that they leave memory for other keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// The memory limit for all requests and answers together.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    most: usize,
    taken: AtomicUsize,
}

/// Memory reserved for a request or an answer. It is released on drop.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<MemoryBudget>,
    holder: Option<KeyReservations>,
    bytes: usize,
}

/// The reservations of one key, which share part of the budget.
#[derive(Debug, Clone)]
struct KeyReservations {
    /// Their total size, in bytes.
    taken: Arc<AtomicUsize>,
    most: usize,
}

/// Why a reservation was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReservationError {
    /// All requests and answers together would exceed the budget.
    Whole,
    /// The requests and answers of the same key would exceed its share.
    Part,
}

impl MemoryBudget {
    /// `most`: in bytes.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: AtomicUsize::new(0) })
    }

    /// An empty reservation.
    pub(crate) fn share(self: &Arc<Self>) -> Reservation {
        Reservation { budget: Arc::clone(self), holder: None, bytes: 0 }
    }

    /// An empty reservation for a key whose reservations together may use `percent` percent of the budget. `taken`: the
    /// bytes that they use.
    pub(crate) fn share_of(self: &Arc<Self>, taken: &Arc<AtomicUsize>, percent: u8) -> Reservation {
        let count = usize::from(percent);
        let most = match percent {
            // The budget is the only limit.
            100.. => usize::MAX,
            // Divided first, so that no product overflows.
            _ => self.most / 100 * count + self.most % 100 * count / 100,
        };
        let holder = KeyReservations { taken: Arc::clone(taken), most };
        Reservation { budget: Arc::clone(self), holder: Some(holder), bytes: 0 }
    }

    /// The bytes in use.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Reservation {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the size to `bytes`. Errors: the budget or the key's share is exhausted; the size is unchanged.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), ReservationError> {
        if bytes <= self.bytes {
            self.give_back(self.bytes - bytes);
        } else {
            let more = bytes - self.bytes;
            if let Some(holder) = &self.holder {
                take(&holder.taken, more, holder.most).ok_or(ReservationError::Part)?;
            }
            if take(&self.budget.taken, more, self.budget.most).is_none() {
                if let Some(holder) = &self.holder {
                    holder.taken.fetch_sub(more, Ordering::Relaxed);
                }
                return Err(ReservationError::Whole);
            }
        }
        self.bytes = bytes;
        Ok(())
    }

    /// An empty reservation for the same key.
    pub(crate) fn sibling(&self) -> Self {
        Self { budget: Arc::clone(&self.budget), holder: self.holder.clone(), bytes: 0 }
    }

    /// Ties this reservation to bytes: it is released when the last slice of them is dropped.
    pub(crate) fn attach(self, bytes: Bytes) -> Bytes {
        if bytes.is_empty() { bytes } else { Bytes::from_owner(Charged { bytes, _share: self }) }
    }

    fn give_back(&self, bytes: usize) {
        if bytes > 0 {
            self.budget.taken.fetch_sub(bytes, Ordering::Relaxed);
            if let Some(holder) = &self.holder {
                holder.taken.fetch_sub(bytes, Ordering::Relaxed);
            }
        }
    }
}

/// See [`Reservation::attach`].
struct Charged {
    bytes: Bytes,
    _share: Reservation,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Adds `more` unless the total would exceed `most`.
fn take(taken: &AtomicUsize, more: usize, most: usize) -> Option<usize> {
    let add = |taken: usize| taken.checked_add(more).filter(|taken| *taken <= most);
    taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_exceed_the_budget_together() {
        let budget = MemoryBudget::new(10);
        let (mut one, mut other) = (budget.share(), budget.share());
        assert_eq!(
            (one.hold(6), other.hold(4), other.hold(5)),
            (Ok(()), Ok(()), Err(ReservationError::Whole))
        );
        assert_eq!(budget.taken(), 10);
        assert_eq!(
            (one.hold(5), other.hold(5), one.hold(usize::MAX)),
            (Ok(()), Ok(()), Err(ReservationError::Whole))
        );
        drop(one);
        assert_eq!(budget.taken(), 5);
        drop(other);
        assert_eq!(budget.taken(), 0);
    }

    #[test]
    fn shares_of_one_holder_never_exceed_its_fraction() {
        let budget = MemoryBudget::new(10);
        let (mine, others) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (mut one, mut two) = (budget.share_of(&mine, 50), budget.share_of(&mine, 50));
        let mut other = budget.share_of(&others, 100);
        assert_eq!((one.hold(3), two.hold(3), two.hold(2)), (Ok(()), Err(ReservationError::Part), Ok(())));
        assert_eq!((other.hold(6), other.hold(5)), (Err(ReservationError::Whole), Ok(())));
        // A rejected reservation takes no memory.
        assert_eq!((budget.taken(), others.load(Ordering::Relaxed)), (10, 5));
        drop(one);
        assert_eq!((two.hold(5), mine.load(Ordering::Relaxed)), (Ok(()), 5));
        drop((two, other));
        assert_eq!((budget.taken(), mine.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn fraction_of_any_budget_is_less_than_the_whole() {
        for (most, half) in [(0, 0), (1, 0), (99, 49), (199, 99), (usize::MAX, usize::MAX / 100 * 50)] {
            let (budget, taken) = (MemoryBudget::new(most), Arc::default());
            let mut share = budget.share_of(&taken, 50);
            assert_eq!(
                (share.hold(half), share.hold(most / 2 + 1)),
                (Ok(()), Err(ReservationError::Part)),
                "{most}"
            );
            drop(share);
            assert_eq!(budget.share_of(&taken, 100).hold(most), Ok(()));
        }
    }

    #[test]
    fn attached_bytes_hold_their_share_until_the_last_slice_drops() {
        let budget = MemoryBudget::new(10);
        let mut share = budget.share();
        share.hold(9).expect("room");
        let whole = share.attach(Bytes::from_static(b"whole"));
        let part = whole.slice(2..3);
        drop(whole);
        assert_eq!((&*part, budget.taken()), (&b"o"[..], 9));
        drop(part);
        assert_eq!(budget.taken(), 0);
    }
}
