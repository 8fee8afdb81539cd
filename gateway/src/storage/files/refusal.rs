//! The error for a client whose files don't fit: how much is taken, and when there will be room.

use gatewright::ErrorCode;
use gatewright_store::{ExpiringFile, FileTotals};

use super::GeneratedFiles;
use crate::wire::ApiError;

/// The `retry-after` if the space is taken by unfinished work rather than files.
const SHORT_WAIT_S: u64 = 1;
/// How many files are examined to predict when there will be room.
const MAX_LOOKED_AT: u32 = 1_000;

/// Which limit is reached.
#[derive(Clone, Copy)]
pub(super) enum ExceededBound<'o> {
    /// The space that all keys share.
    All,
    /// The share of it for the API key with this id (0048).
    Part(&'o str),
    /// The limit of the API key with this id.
    Limit(&'o str),
}

/// A request for space, with the limit it must stay within.
pub(super) struct BoundCheck<'o> {
    pub(super) bound: ExceededBound<'o>,
    pub(super) taken: FileTotals,
    /// Promised to work in progress, in bytes, including this request.
    pub(super) promised: u64,
    /// Requested, in bytes.
    pub(super) more: u64,
    pub(super) most: FileTotals,
}

impl<'o> ExceededBound<'o> {
    /// The id of the API key whose files count; `None`: all files count.
    fn owner(self) -> Option<&'o str> {
        match self {
            Self::All => None,
            Self::Part(owner) | Self::Limit(owner) => Some(owner),
        }
    }
}

impl BoundCheck<'_> {
    pub(super) fn is_full(&self) -> bool {
        self.taken.files >= self.most.files || self.missing() > 0
    }

    /// Whether at least half of the space is left: no gateway fills that much before it counts again.
    pub(super) fn is_plentiful(&self) -> bool {
        let bytes = self.taken.bytes.saturating_add(self.promised);
        self.taken.files < self.most.files / 2 && bytes < self.most.bytes / 2
    }

    /// By how many bytes the limit would be exceeded.
    fn missing(&self) -> u64 {
        self.taken.bytes.saturating_add(self.promised).saturating_sub(self.most.bytes)
    }

    /// The error for the request.
    pub(super) async fn refusal(self, files: &GeneratedFiles) -> ApiError {
        let Self { taken, promised, more, most, .. } = self;
        let held = taken.bytes.saturating_add(promised).saturating_sub(more);
        let full = match (taken.files >= most.files, self.bound) {
            (true, ExceededBound::All) => format!("there are {} generated files, the maximum", taken.files),
            (true, ExceededBound::Part(_) | ExceededBound::Limit(_)) => {
                format!("this API key has {} generated files, its maximum", taken.files)
            }
            (false, ExceededBound::All) => format!(
                "{held} of the {} bytes for generated files are in use, and this needs about {more}",
                most.bytes
            ),
            (false, ExceededBound::Part(_)) => format!(
                "generated files of this API key use {held} of the {} bytes that one key may use, and this needs about {more}",
                most.bytes
            ),
            (false, ExceededBound::Limit(_)) => format!(
                "generated files of this API key use {held} of the {} bytes that its limit file_bytes allows, and this needs \
                    about {more}",
                most.bytes
            ),
        };
        // If its own share or limit is exceeded, the key itself is the cause.
        let code = match self.bound {
            ExceededBound::All => &ErrorCode::FILE_STORAGE_FULL,
            ExceededBound::Part(_) | ExceededBound::Limit(_) => &ErrorCode::RATE_LIMIT_EXCEEDED,
        };
        if more > most.bytes {
            // Waiting doesn't help.
            let message = match self.bound {
                ExceededBound::All | ExceededBound::Part(_) => full,
                ExceededBound::Limit(_) => format!("{full}; request less, or use a key with a larger limit"),
            };
            return ApiError::new(code, message);
        }
        let wait = self.wait(files).await;
        let message = format!("{full}; files expire and free space in {wait} s");
        ApiError::new(code, message).retry_after(wait)
    }

    /// Seconds until there is room.
    async fn wait(&self, files: &GeneratedFiles) -> u64 {
        let (mut missing, mut is_one_too_many) = (self.missing(), self.taken.files >= self.most.files);
        let mut wait = SHORT_WAIT_S;
        // If the store has become unavailable, there is no better estimate.
        let files = files.store.first_to_expire(self.bound.owner(), MAX_LOOKED_AT).await.unwrap_or_default();
        for ExpiringFile { file, left } in files {
            if missing == 0 && !is_one_too_many {
                break;
            }
            (missing, is_one_too_many) = (missing.saturating_sub(file.bytes), false);
            wait = left.max(SHORT_WAIT_S);
        }
        wait
    }
}
