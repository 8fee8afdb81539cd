//! Ends the process at a chosen point, so that tests see what survives. In debug builds only.

use std::panic::Location;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Environment variable with the number of the point, counted from 1.
const VARIABLE: &str = "GATEWRIGHT_CRASH_AT";

/// Environment variable with the path of a file: points count once it exists. Default: from the beginning.
const BEGINS: &str = "GATEWRIGHT_CRASH_FROM";

/// Environment variable with part of a source file path: only points in those files count. Default: all points.
const PLACE: &str = "GATEWRIGHT_CRASH_IN";

/// A point between two steps that change durable data.
#[track_caller]
pub fn point() {
    if cfg!(debug_assertions) && counts(Location::caller()) && has_started() {
        pass();
    }
}

fn pass() {
    static LEFT: LazyLock<AtomicU64> = LazyLock::new(|| {
        let number = std::env::var(VARIABLE).ok().and_then(|number| number.parse().ok());
        AtomicU64::new(number.unwrap_or(0))
    });
    if LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
        // Like a kill: nothing more is written or reported.
        std::process::abort();
    }
}

/// Whether the points of a place count.
fn counts(place: &Location<'_>) -> bool {
    static AWAITED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var(PLACE).ok());
    AWAITED.as_ref().is_none_or(|part| place.file().replace('\\', "/").contains(part))
}

/// Whether counting has started.
fn has_started() -> bool {
    static AWAITED: LazyLock<Option<PathBuf>> = LazyLock::new(|| std::env::var_os(BEGINS).map(PathBuf::from));
    AWAITED.as_ref().is_none_or(|place| place.exists())
}
