//! Usage: what each request consumed, by key, model, upstream and day, and what remains of the limits of its key.
//!
//! Nothing here waits for the store: numbers are added up in memory and written to a file (`journal`), and a task writes
//! them into the store (`access/sync/writing.rs`).

mod account;
mod caller;
mod charge;
mod followed;
mod journal;
mod ledger;
mod meter;
mod price;
mod spending;

pub(crate) use self::account::{Account, InFlight, LimitExceeded};
pub(crate) use self::caller::Caller;
pub(crate) use self::charge::{Charge, Consumed};
pub(crate) use self::followed::{FollowedResponse, FollowedResponses};
pub(crate) use self::journal::{Journal, RecoveredJournal};
pub(crate) use self::ledger::Ledger;
pub(crate) use self::meter::Remaining;
pub(crate) use self::price::{MediaUnits, Rates, SoundLength};
pub(crate) use self::spending::Spending;
