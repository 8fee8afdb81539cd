//! One suite for every store, plus guarantees that only databases make.

#[macro_use]
mod kinds;

mod concurrency;
mod configs;
mod copies;
mod files;
mod filled;
mod full_disk;
mod keys;
mod node_reports;
mod objects;
mod outage;
mod places;
pub(crate) mod replays;
mod server;
mod tasks;
mod upgrade;
mod upkeep;
mod usage;
