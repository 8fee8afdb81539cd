//! One suite for every store, plus guarantees that only databases make.

#[macro_use]
mod kinds;

mod away;
mod configs;
mod copies;
mod files;
mod filled;
mod full_disk;
mod keys;
mod node_reports;
mod places;
mod replays;
mod server;
mod several;
mod spool;
mod tasks;
mod upgrade;
mod upkeep;
mod usage;
