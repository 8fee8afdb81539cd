//! One suite for every store, and what only databases promise.

#[macro_use]
mod kinds;

mod away;
mod keys;
mod places;
mod tasks;
mod upgrade;
mod upkeep;
mod usage;
