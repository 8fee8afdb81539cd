//! What a client is told when there is no room for its files: how much is taken, and when there will be room.

use gatewright::ErrorCode;

use super::Files;
use crate::clock::unix_seconds;
use crate::store::durable::Taken;
use crate::wire::ApiError;

/// The `retry-after` when unfinished work, not files, takes the room.
const SHORT_WAIT_S: u64 = 1;
/// How many files are looked at to tell when there will be room.
const MOST_LOOKED_AT: u32 = 1_000;

/// What is to fit into the room, or into the part of it that an API key has.
pub(super) struct Full<'o> {
    /// The id of the key whose part it is.
    pub(super) owner: Option<&'o str>,
    pub(super) taken: Taken,
    /// To work under way, in bytes, with what is asked for.
    pub(super) promised: u64,
    /// What is asked for.
    pub(super) more: u64,
    pub(super) most: Taken,
}

impl Full<'_> {
    pub(super) fn is_full(&self) -> bool {
        self.taken.files >= self.most.files || self.missing() > 0
    }

    /// How many bytes too many there would be.
    fn missing(&self) -> u64 {
        self.taken.bytes.saturating_add(self.promised).saturating_sub(self.most.bytes)
    }

    /// The error of a request.
    pub(super) async fn refusal(self, files: &Files) -> ApiError {
        let Self { taken, promised, more, most, .. } = self;
        let held = taken.bytes.saturating_add(promised).saturating_sub(more);
        let full = match (taken.files >= most.files, self.owner) {
            (true, None) => format!("there are {} generated files, as many as are kept", taken.files),
            (true, Some(_)) => {
                format!("there are {} generated files of this API key, as many as it may have", taken.files)
            }
            (false, None) => format!(
                "{held} of the {} bytes for generated files are taken, and this needs about {more}",
                most.bytes
            ),
            (false, Some(_)) => format!(
                "generated files of this API key take {held} of the {} bytes that one key may take, and this \
                 needs about {more}",
                most.bytes
            ),
        };
        // Beyond its part, it is the key's own doing.
        let code = match self.owner {
            None => &ErrorCode::FILE_STORAGE_FULL,
            Some(_) => &ErrorCode::RATE_LIMIT_EXCEEDED,
        };
        if more > most.bytes {
            // Waiting does not help.
            return ApiError::new(code, full);
        }
        let wait = self.wait(files).await;
        let message = format!("{full}; files expire and make room in {wait} s");
        ApiError::new(code, message).retry_after(wait)
    }

    /// The seconds until there is room.
    async fn wait(&self, files: &Files) -> u64 {
        let now = unix_seconds();
        let (mut missing, mut is_one_too_many) = (self.missing(), self.taken.files >= self.most.files);
        let mut wait = SHORT_WAIT_S;
        // If the store has gone since, nobody knows better.
        for file in files.store.first_to_expire(self.owner, MOST_LOOKED_AT).await.unwrap_or_default() {
            if missing == 0 && !is_one_too_many {
                break;
            }
            (missing, is_one_too_many) = (missing.saturating_sub(file.bytes), false);
            wait = file.expires.saturating_sub(now).max(SHORT_WAIT_S);
        }
        wait
    }
}
