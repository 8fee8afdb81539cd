//! Threads that watch the connection of their request themselves, instead of a runtime.

use std::cell::RefCell;

use crate::tcp::WatchedSocket;

thread_local! {
    /// What this thread watches while it polls a request; none otherwise.
    static SLOT: RefCell<Option<Slot>> = const { RefCell::new(None) };
}

/// The connection that a thread watches for a request.
#[derive(Debug, Default)]
pub struct Slot {
    connection: Option<WatchedSocket>,
}

impl Slot {
    /// Polls a request on this thread. If it takes an idle connection, this thread watches it instead of the runtime; a new
    /// connection is always opened and watched by the runtime.
    pub fn watching<T>(&mut self, poll: impl FnOnce() -> T) -> T {
        let outer = SLOT.replace(Some(std::mem::take(self)));
        // Restored even after a panic.
        let _restored = Restored { slot: self, outer };
        poll()
    }

    /// The request's connection, if this thread watches it.
    pub fn connection(&self) -> Option<&WatchedSocket> {
        self.connection.as_ref()
    }
}

struct Restored<'a> {
    slot: &'a mut Slot,
    outer: Option<Slot>,
}

impl Drop for Restored<'_> {
    fn drop(&mut self) {
        *self.slot = SLOT.replace(self.outer.take()).unwrap_or_default();
    }
}

/// Whether this thread watches the connection of its request.
pub(crate) fn is_on() -> bool {
    SLOT.with_borrow(Option::is_some)
}

/// Sets the connection of this thread's request, or clears it.
pub(crate) fn set(connection: Option<WatchedSocket>) {
    SLOT.with_borrow_mut(|slot| {
        if let Some(slot) = slot {
            slot.connection = connection;
        }
    });
}
