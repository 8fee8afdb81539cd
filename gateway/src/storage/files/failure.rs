//! Why files can't be written or read: the log gets the reason with the place, a client only learns when to retry.

use std::error::Error;
use std::io;

use gatewright::ErrorCode;
use gatewright_store::StoreError;

use crate::wire::ApiError;

/// The `retry-after` of a failure that an operator must resolve.
const WAIT_S: u64 = 30;

/// Why the contents of a file can't be written or read.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct FileError {
    is_full: bool,
    message: String,
}

impl From<object_store::Error> for FileError {
    fn from(error: object_store::Error) -> Self {
        Self::of(&error)
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::of(&error)
    }
}

impl FileError {
    fn of(error: &(dyn Error + 'static)) -> Self {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};

        let (mut cause, mut is_full) = (Some(error), false);
        while let Some(error) = cause {
            let kind = error.downcast_ref().map(io::Error::kind);
            is_full |= matches!(kind, Some(StorageFull | QuotaExceeded | FileTooLarge));
            cause = error.source();
        }
        Self { is_full, message: error.to_string() }
    }

    /// The place for the files is missing.
    pub(super) fn away(place: &std::path::Path, error: &io::Error) -> Self {
        let message = format!("the folder of the files, {}, is unavailable: {error}", place.display());
        Self { is_full: false, message }
    }

    /// A file is shorter than recorded.
    pub(super) fn cut() -> Self {
        Self { is_full: false, message: "a file is truncated".to_owned() }
    }

    /// The error of a request whose file can't be written. The reason is logged.
    pub(super) fn unwritten(self) -> ApiError {
        if self.is_full {
            tracing::error!("{self}: a generated file cannot be stored; free space on its disk");
            let message = "the disk for generated files is full; the operator has to free space";
            return ApiError::new(&ErrorCode::FILE_STORAGE_FULL, message).retry_after(WAIT_S);
        }
        tracing::error!("{self}: a generated file cannot be stored");
        unavailable("written")
    }

    /// The error of a request whose file can't be read. The reason is logged.
    pub(super) fn unread(self) -> ApiError {
        tracing::error!("{self}: a generated file cannot be served");
        unavailable("read")
    }
}

/// The error of a request about files while the store fails. The reason is logged.
pub(crate) fn store_unavailable(error: &StoreError) -> ApiError {
    tracing::error!("{error}: generated files cannot be stored");
    unavailable("stored")
}

pub(super) fn unavailable(done: &str) -> ApiError {
    let message = format!("generated files cannot be {done} at the moment; see the gateway's log");
    ApiError::new(&ErrorCode::SERVER_IS_OVERLOADED, message).retry_after(WAIT_S)
}
