//! The evidence of a cell: expected and observed values, and the HTTP exchange.
//!
//! The kit writes one JSON file per cell into a folder next to the report; pages link to them.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::model::CheckId;

/// Maximum number of evidence files in a folder.
const MAX_FILES: usize = 10_000;
/// Maximum size of an evidence file, in bytes.
const MAX_BYTES: u64 = 16 << 20;
/// Maximum size of all evidence files of a folder together, in bytes.
const MAX_FOLDER_BYTES: u64 = 256 << 20;

/// The evidence of one cell.
///
/// ```
/// use gatewright_report::Evidence;
///
/// let json = r#"{ "id": "models_endpoint", "model": null, "assertions": [], "exchange": null }"#;
/// let evidence: Evidence = serde_json::from_str(json)?;
/// assert!(evidence.assertions.is_empty());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The check.
    pub id: CheckId,
    /// The model under test, as in the report's check.
    pub model: Option<String>,
    /// What was asserted, in order.
    pub assertions: Vec<Assertion>,
    /// The HTTP exchange, if there was one.
    pub exchange: Option<Exchange>,
}

/// One assertion of a check.
///
/// ```
/// use gatewright_report::Assertion;
///
/// let json = r#"{ "what": "HTTP status", "expected": "200", "observed": "500", "held": false }"#;
/// let assertion: Assertion = serde_json::from_str(json)?;
/// assert!(!assertion.held);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assertion {
    /// The subject, in a few words: `HTTP status`.
    pub what: String,
    /// The expected value.
    pub expected: String,
    /// The observed value.
    pub observed: String,
    /// Whether the two match.
    pub held: bool,
}

/// Request and response. The kit has removed secrets and truncated long texts.
///
/// ```
/// use gatewright_report::Exchange;
///
/// let exchange = Exchange {
///     request: "GET /v1/models HTTP/1.1\n\n".to_owned(),
///     response: "HTTP/1.1 200 OK\n\n{}".to_owned(),
/// };
/// assert!(exchange.response.contains("200"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// Headers, an empty line and the body; for an agent, its command line and the names of its environment variables.
    pub request: String,
    /// Headers, an empty line and the body; for an agent, its output.
    pub response: String,
}

/// Evidence and its file.
///
/// ```no_run
/// use std::path::Path;
///
/// use gatewright_report::{EvidenceFile, Report, html};
///
/// fn page(report: &Report) -> std::io::Result<String> {
///     let evidence = EvidenceFile::read_folder(Path::new("evidence"), Some(Path::new("report.html")))?;
///     Ok(html(report, &evidence))
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceFile {
    /// Path of the file relative to the page, with `/` as the separator: `evidence/02-model-sol.json`.
    pub path: String,
    /// The contents of the file.
    pub evidence: Evidence,
}

impl EvidenceFile {
    /// All evidence of a folder, sorted by file name. page: the file to which the page will be written; paths are
    /// relative to its folder, or to the working folder if there is no page.
    ///
    /// Errors, each with the name of the file: the folder or a `.json` file cannot be read, or is not evidence; there
    /// are more than 10,000 files, a file of more than 16 MiB, or more than 256 MiB in total.
    ///
    /// ```no_run
    /// use gatewright_report::EvidenceFile;
    ///
    /// for file in EvidenceFile::read_folder("evidence".as_ref(), Some("report.html".as_ref()))? {
    ///     println!("{}: {} assertions", file.path, file.evidence.assertions.len());
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn read_folder(folder: &Path, page: Option<&Path>) -> io::Result<Vec<Self>> {
        Self::read_within(folder, page, MAX_FOLDER_BYTES)
    }

    /// `most`: maximum total size of all files, in bytes.
    fn read_within(folder: &Path, page: Option<&Path>, most: u64) -> io::Result<Vec<Self>> {
        let named = |place: &Path, problem: &dyn std::fmt::Display| {
            io::Error::other(format!("{}: {problem}", place.display()))
        };
        let failed =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                files.push(path);
            }
            if files.len() > MAX_FILES {
                return Err(named(folder, &format!("more than {MAX_FILES} files")));
            }
        }
        files.sort();
        let way = Self::way(page, folder).map_err(failed)?;
        let mut room = most;
        let one = |file: PathBuf| {
            let mut json = Vec::new();
            let open = File::open(&file).map_err(|error| named(&file, &error))?;
            open.take(MAX_BYTES + 1).read_to_end(&mut json).map_err(|error| named(&file, &error))?;
            if json.len() as u64 > MAX_BYTES {
                return Err(named(&file, &format!("more than {MAX_BYTES} bytes")));
            }
            room = room
                .checked_sub(json.len() as u64)
                .ok_or_else(|| named(folder, &format!("more than {most} bytes of evidence in total")))?;
            let evidence: Evidence = serde_json::from_slice(&json)
                .map_err(|error| named(&file, &format!("no evidence: {error}")))?;
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            Ok(Self { path: format!("{way}{name}"), evidence })
        };
        files.into_iter().map(one).collect()
    }

    /// The relative path from a page's folder (without a page, the working folder) to an evidence folder, as a prefix
    /// for file names: empty, or ending in `/`.
    ///
    /// Errors: one of the folders does not exist.
    ///
    /// ```
    /// use gatewright_report::EvidenceFile;
    ///
    /// let folder = std::env::temp_dir();
    /// assert_eq!(EvidenceFile::way(Some(&folder.join("report.html")), &folder)?, "");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn way(page: Option<&Path>, folder: &Path) -> io::Result<String> {
        let from = page.and_then(Path::parent).filter(|parent| !parent.as_os_str().is_empty());
        let (from, to) = (from.unwrap_or(Path::new(".")).canonicalize()?, folder.canonicalize()?);
        let shared = from.components().zip(to.components()).take_while(|(left, right)| left == right).count();
        let up = from.components().skip(shared).map(|_| Component::ParentDir);
        let mut way = String::new();
        for step in up.chain(to.components().skip(shared)) {
            way.push_str(&step.as_os_str().to_string_lossy());
            way.push('/');
        }
        Ok(way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_evidence_size_of_a_folder_is_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let evidence = r#"{"id": "model_access", "model": null, "assertions": [], "exchange": null}"#;
        for name in ["a.json", "b.json", "c.json"] {
            fs::write(folder.path().join(name), evidence).expect("written");
        }
        let most = 3 * evidence.len() as u64;
        let read = |most| EvidenceFile::read_within(folder.path(), None, most);
        assert_eq!(read(most).expect("exactly at the limit").len(), 3);
        let error = read(most - 1).expect_err("over the limit").to_string();
        assert!(error.ends_with(&format!("more than {} bytes of evidence in total", most - 1)), "{error}");
    }
}
