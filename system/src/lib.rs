//! What the store and the gateway need of the system they run on: the time, private files that survive a power failure,
//! random numbers and tasks that survive a panic. In debug builds, tests can set the clock wrong and end the process
//! between two steps.
//!
//! It has no stable interface: it is a part of the crate `gatewright-gateway`.

pub mod clock;
pub mod crash;
pub mod disk;
mod random;
mod supervised;

pub use self::random::random_bytes;
pub use self::supervised::supervise;
