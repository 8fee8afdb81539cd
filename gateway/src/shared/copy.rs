//! A copy of the last document in use, in the data folder: a gateway that starts while the server is away uses it.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use gatewright::whole_file::write_file;
use gatewright_store::StoredRevision;
use gatewright_system::crash;
use serde::{Deserialize, Serialize};

/// Name of the file in the data folder.
const NAME: &str = "shared-config.json";
/// Maximum size of the file: JSON takes up to six bytes per byte of the document.
const MAX_COPY_BYTES: u64 = 8 * 1024 * 1024;

#[derive(Serialize, Deserialize)]
struct ConfigCopy {
    revision: u64,
    made: u64,
    by: String,
    repeats: Option<u64>,
    document: String,
}

pub(super) fn place_in(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// Replaces the stored document, completely or not at all.
pub(super) fn keep(place: &Path, revision: &StoredRevision, document: &str) -> io::Result<()> {
    let StoredRevision { number, made, author, repeats } = revision.clone();
    let copy = ConfigCopy { revision: number, made, by: author, repeats, document: document.to_owned() };
    let document = serde_json::to_vec(&copy)?;
    crash::point();
    write_file(place, &document)?;
    crash::point();
    Ok(())
}

/// The stored document. An unreadable one counts as missing.
pub(super) fn stored_copy(place: &Path) -> Option<(StoredRevision, String)> {
    let mut text = String::new();
    File::open(place).and_then(|file| file.take(MAX_COPY_BYTES).read_to_string(&mut text)).ok()?;
    let ConfigCopy { revision: number, made, by: author, repeats, document } =
        serde_json::from_str(&text).ok()?;
    Some((StoredRevision { number, made, author, repeats }, document))
}
