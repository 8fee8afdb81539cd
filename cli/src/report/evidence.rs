//! The evidence folder of a report: one JSON file per cell, written by the check kit.

use std::path::Path;

use gatewright::report::EvidenceFile;

use crate::exit::Failure;

/// Reads the evidence in a folder, for a page at `page`; see [`EvidenceFile::read_folder`].
pub(crate) fn read(folder: &Path, page: Option<&Path>) -> Result<Vec<EvidenceFile>, Failure> {
    EvidenceFile::read_folder(folder, page)
        .map_err(|error| Failure::Usage(format!("cannot read evidence: {error}")))
}
