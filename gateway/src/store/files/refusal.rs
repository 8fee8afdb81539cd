//! What a client is told when there is no room for its files: how much is taken, and when there will be room.

use gatewright::ErrorCode;

use super::Files;
use crate::store::durable::{Expiring, Taken};
use crate::wire::ApiError;

/// The `retry-after` when unfinished work, not files, takes the room.
const SHORT_WAIT_S: u64 = 1;
/// How many files are looked at to tell when there will be room.
const MOST_LOOKED_AT: u32 = 1_000;

/// What there is no room in.
#[derive(Clone, Copy)]
pub(super) enum Bound<'o> {
    /// The room that all share.
    All,
    /// The part of it that the API key with this id has (0048).
    Part(&'o str),
    /// What the API key with this id was issued for.
    Limit(&'o str),
}

/// What is to fit into a bound.
pub(super) struct Full<'o> {
    pub(super) bound: Bound<'o>,
    pub(super) taken: Taken,
    /// To work under way, in bytes, with what is asked for.
    pub(super) promised: u64,
    /// What is asked for.
    pub(super) more: u64,
    pub(super) most: Taken,
}

impl<'o> Bound<'o> {
    /// The id of the API key whose files it is for; `None`: those of all.
    fn owner(self) -> Option<&'o str> {
        match self {
            Self::All => None,
            Self::Part(owner) | Self::Limit(owner) => Some(owner),
        }
    }
}

impl Full<'_> {
    pub(super) fn is_full(&self) -> bool {
        self.taken.files >= self.most.files || self.missing() > 0
    }

    /// Whether half of the room is left, at least: no gateway fills as much before it counts again.
    pub(super) fn is_plentiful(&self) -> bool {
        let bytes = self.taken.bytes.saturating_add(self.promised);
        self.taken.files < self.most.files / 2 && bytes < self.most.bytes / 2
    }

    /// How many bytes too many there would be.
    fn missing(&self) -> u64 {
        self.taken.bytes.saturating_add(self.promised).saturating_sub(self.most.bytes)
    }

    /// The error of a request.
    pub(super) async fn refusal(self, files: &Files) -> ApiError {
        let Self { taken, promised, more, most, .. } = self;
        let held = taken.bytes.saturating_add(promised).saturating_sub(more);
        let full = match (taken.files >= most.files, self.bound) {
            (true, Bound::All) => format!("there are {} generated files, as many as are kept", taken.files),
            (true, Bound::Part(_) | Bound::Limit(_)) => {
                format!("there are {} generated files of this API key, as many as it may have", taken.files)
            }
            (false, Bound::All) => format!(
                "{held} of the {} bytes for generated files are taken, and this needs about {more}",
                most.bytes
            ),
            (false, Bound::Part(_)) => format!(
                "generated files of this API key take {held} of the {} bytes that one key may take, and this \
                 needs about {more}",
                most.bytes
            ),
            (false, Bound::Limit(_)) => format!(
                "generated files of this API key take {held} of the {} bytes that its limit file_bytes allows, and \
                 this needs about {more}",
                most.bytes
            ),
        };
        // Beyond its part or its limit, it is the key's own doing.
        let code = match self.bound {
            Bound::All => &ErrorCode::FILE_STORAGE_FULL,
            Bound::Part(_) | Bound::Limit(_) => &ErrorCode::RATE_LIMIT_EXCEEDED,
        };
        if more > most.bytes {
            // Waiting does not help.
            let message = match self.bound {
                Bound::All | Bound::Part(_) => full,
                Bound::Limit(_) => format!("{full}; ask for less, or for a key with a larger limit"),
            };
            return ApiError::new(code, message);
        }
        let wait = self.wait(files).await;
        let message = format!("{full}; files expire and make room in {wait} s");
        ApiError::new(code, message).retry_after(wait)
    }

    /// The seconds until there is room.
    async fn wait(&self, files: &Files) -> u64 {
        let (mut missing, mut is_one_too_many) = (self.missing(), self.taken.files >= self.most.files);
        let mut wait = SHORT_WAIT_S;
        // If the store has gone since, nobody knows better.
        let files = files.store.first_to_expire(self.bound.owner(), MOST_LOOKED_AT).await.unwrap_or_default();
        for Expiring { file, left } in files {
            if missing == 0 && !is_one_too_many {
                break;
            }
            (missing, is_one_too_many) = (missing.saturating_sub(file.bytes), false);
            wait = left.max(SHORT_WAIT_S);
        }
        wait
    }
}
