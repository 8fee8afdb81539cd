//! The files of a run: looked at before anything is sent, written after.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use gatewright::report::{EvidenceFile, html, junit};
use gatewright_checkkit::{Finished, check_place, write_evidence, write_file};

use crate::outcome::Failure;

pub(super) struct Outputs {
    /// None where the report goes to standard output.
    report: Option<PathBuf>,
    html: Option<PathBuf>,
    junit: Option<PathBuf>,
    evidence: Option<PathBuf>,
}

impl Outputs {
    /// Errors: a file could not be written in its place, which is better known before a run than after it.
    pub(super) fn new(
        out: &Path,
        html: Option<&Path>,
        junit: Option<&Path>,
        evidence: Option<&Path>,
    ) -> Result<Self, Failure> {
        let report = (out.as_os_str() != "-").then(|| out.to_owned());
        for place in [report.as_deref(), html, junit].into_iter().flatten() {
            check_place(place).map_err(|error| Failure::Usage(unwritable(place, &error)))?;
        }
        if let Some(folder) = evidence {
            std::fs::create_dir_all(folder)
                .and_then(|()| check_place(&folder.join("evidence.json")))
                .map_err(|error| Failure::Usage(unwritable(folder, &error)))?;
        }
        let owned = |place: Option<&Path>| place.map(Path::to_owned);
        Ok(Self { report, html: owned(html), junit: owned(junit), evidence: owned(evidence) })
    }

    /// Whether standard output is the report's.
    pub(super) fn prints_report(&self) -> bool {
        self.report.is_none()
    }

    /// Writes everything; what cannot be written does not keep the rest from being. A report that has no place any
    /// more goes to standard output.
    ///
    /// Errors: what could not be written.
    pub(super) fn write(&self, finished: &Finished) -> Result<(), String> {
        let mut problems = Vec::new();
        let document = finished.report.to_json();
        match &self.report {
            None => print_report(&document)
                .unwrap_or_else(|error| problems.push(format!("cannot write the report: {error}"))),
            Some(place) => {
                if let Err(error) = write_file(place, document.as_bytes()) {
                    problems.push(format!("{}; the report is on standard output", unwritable(place, &error)));
                    print_report(&document)
                        .unwrap_or_else(|error| problems.push(format!("cannot write it there: {error}")));
                }
            }
        }
        let evidence = self.write_evidence(finished).unwrap_or_else(|problem| {
            problems.push(problem);
            Vec::new()
        });
        if let Some(page) = &self.html {
            write(page, &html(&finished.report, &evidence), &mut problems);
        }
        if let Some(file) = &self.junit {
            write(file, &junit(&finished.report), &mut problems);
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\ngatewright: ")) }
    }

    /// With the way from the page to each file.
    fn write_evidence(&self, finished: &Finished) -> Result<Vec<EvidenceFile>, String> {
        let Some(folder) = &self.evidence else { return Ok(Vec::new()) };
        let names = write_evidence(folder, &finished.evidence).map_err(|error| unwritable(folder, &error))?;
        let way =
            EvidenceFile::way(self.html.as_deref(), folder).map_err(|error| unwritable(folder, &error))?;
        let written = names.into_iter().zip(&finished.evidence);
        Ok(written
            .map(|(name, (_, evidence))| EvidenceFile {
                path: format!("{way}{name}"),
                evidence: evidence.clone(),
            })
            .collect())
    }
}

fn print_report(document: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(document.as_bytes())?;
    out.flush()
}

fn write(place: &Path, text: &str, problems: &mut Vec<String>) {
    if let Err(error) = write_file(place, text.as_bytes()) {
        problems.push(unwritable(place, &error));
    }
}

fn unwritable(place: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {error}", place.display())
}
