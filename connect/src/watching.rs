//! Threads that watch the connection of their request themselves, instead of a runtime.

use std::cell::RefCell;

use crate::tcp::Watched;

thread_local! {
    /// What this thread watches while it polls a request; none outside of that.
    static SLOT: RefCell<Option<Slot>> = const { RefCell::new(None) };
}

/// What a thread watches for a request.
#[derive(Debug, Default)]
pub struct Slot {
    connection: Option<Watched>,
}

impl Slot {
    /// Polls a request on this thread. Of unused connections it takes one for this thread to watch, instead of the runtime;
    /// a new connection is always made and watched by the runtime.
    pub fn watching<T>(&mut self, poll: impl FnOnce() -> T) -> T {
        let outer = SLOT.replace(Some(std::mem::take(self)));
        // Also after a panic.
        let _restored = Restored { slot: self, outer };
        poll()
    }

    /// The connection of the request, if this thread watches it.
    pub fn connection(&self) -> Option<&Watched> {
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

/// The request of this thread has this connection, or none any more.
pub(crate) fn set(connection: Option<Watched>) {
    SLOT.with_borrow_mut(|slot| {
        if let Some(slot) = slot {
            slot.connection = connection;
        }
    });
}
