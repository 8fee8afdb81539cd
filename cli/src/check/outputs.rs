//! The files of a run: looked at before anything is sent, written after.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use gatewright::report::{EvidenceFile, html, junit};
use gatewright_checkkit::{Finished, check_place, same_place, write_evidence, write_file};

use crate::outcome::Failure;

pub(super) struct Outputs {
    report: Place,
    html: Option<Place>,
    junit: Option<Place>,
    evidence: Option<PathBuf>,
}

enum Place {
    StandardOutput,
    File(PathBuf),
}

impl Place {
    fn of(path: &Path) -> Self {
        if path.as_os_str() == "-" { Self::StandardOutput } else { Self::File(path.to_owned()) }
    }

    fn file(&self) -> Option<&Path> {
        match self {
            Self::StandardOutput => None,
            Self::File(file) => Some(file),
        }
    }
}

impl Outputs {
    /// inputs: files that are read, with the option of each; none of them may be written over.
    ///
    /// Errors: a file could not be written in its place, or two would replace each other, which is better known before a
    /// run than after it.
    pub(super) fn new(
        out: &Path,
        html: Option<&Path>,
        junit: Option<&Path>,
        evidence: Option<&Path>,
        inputs: &[(&str, &Path)],
    ) -> Result<Self, Failure> {
        let report = Place::of(out);
        let (html, junit) = (html.map(Place::of), junit.map(Place::of));
        let places = [("--out", Some(&report)), ("--html", html.as_ref()), ("--junit", junit.as_ref())];
        let places: Vec<(&str, &Place)> =
            places.into_iter().filter_map(|(option, place)| Some((option, place?))).collect();
        apart(&places, inputs)?;
        for place in places.iter().filter_map(|(_, place)| place.file()) {
            check_place(place).map_err(|error| Failure::Usage(unwritable(place, &error)))?;
        }
        if let Some(folder) = evidence {
            std::fs::create_dir_all(folder)
                .and_then(|()| check_place(&folder.join("evidence.json")))
                .map_err(|error| Failure::Usage(unwritable(folder, &error)))?;
        }
        Ok(Self { report, html, junit, evidence: evidence.map(Path::to_owned) })
    }

    /// Whether standard output is one of the documents'.
    pub(super) fn take_standard_output(&self) -> bool {
        [Some(&self.report), self.html.as_ref(), self.junit.as_ref()]
            .into_iter()
            .flatten()
            .any(|place| place.file().is_none())
    }

    /// Writes everything; what cannot be written does not keep the rest from being. A report that has no place any
    /// more goes to standard output.
    ///
    /// Errors: what could not be written.
    pub(super) fn write(&self, finished: &Finished) -> Result<(), String> {
        let mut problems = Vec::new();
        let document = finished.report.to_json();
        let mut out = StandardOutput::default();
        match &self.report {
            Place::StandardOutput => out.write("the report", &document, &mut problems),
            Place::File(place) => {
                if let Err(error) = write_file(place, document.as_bytes()) {
                    problems.push(format!("{}; the report is on standard output", unwritable(place, &error)));
                    out.write("the report", &document, &mut problems);
                }
            }
        }
        let evidence = self.write_evidence(finished).unwrap_or_else(|problem| {
            problems.push(problem);
            Vec::new()
        });
        if let Some(place) = &self.html {
            write(place, "the page", &html(&finished.report, &evidence), &mut out, &mut problems);
        }
        if let Some(place) = &self.junit {
            write(place, "the JUnit XML", &junit(&finished.report), &mut out, &mut problems);
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\ngatewright: ")) }
    }

    /// With the way from the page to each file.
    fn write_evidence(&self, finished: &Finished) -> Result<Vec<EvidenceFile>, String> {
        let Some(folder) = &self.evidence else { return Ok(Vec::new()) };
        let names = write_evidence(folder, &finished.evidence).map_err(|error| unwritable(folder, &error))?;
        let way = EvidenceFile::way(self.html.as_ref().and_then(Place::file), folder)
            .map_err(|error| unwritable(folder, &error))?;
        let written = names.into_iter().zip(&finished.evidence);
        Ok(written
            .map(|(name, (_, evidence))| EvidenceFile {
                path: format!("{way}{name}"),
                evidence: evidence.clone(),
            })
            .collect())
    }
}

/// Errors: two documents in one place, or one in the place of an input. A report may replace its own baseline, which has
/// been read by then.
fn apart(places: &[(&str, &Place)], inputs: &[(&str, &Path)]) -> Result<(), Failure> {
    for (index, (option, place)) in places.iter().enumerate() {
        for (earlier, other) in &places[..index] {
            match (place, other) {
                (Place::StandardOutput, Place::StandardOutput) => {
                    return Err(Failure::Usage(format!(
                        "{earlier} and {option} are both -: standard output takes one of them"
                    )));
                }
                (Place::File(file), Place::File(other)) if same_place(file, other) => {
                    return Err(crate::report::same_file(earlier, option, file));
                }
                _ => {}
            }
        }
        for (input, read) in inputs {
            let renews = (*option, *input) == ("--out", "--baseline");
            if let Some(file) = place.file().filter(|file| !renews && same_place(file, read)) {
                return Err(crate::report::same_file(input, option, file));
            }
        }
    }
    Ok(())
}

/// Standard output, for one document.
#[derive(Default)]
struct StandardOutput {
    taken: bool,
}

impl StandardOutput {
    fn write(&mut self, what: &str, document: &str, problems: &mut Vec<String>) {
        if std::mem::replace(&mut self.taken, true) {
            problems.push(format!("{what} is not written: the report took standard output"));
            return;
        }
        let mut out = io::stdout().lock();
        if let Err(error) = out.write_all(document.as_bytes()).and_then(|()| out.flush()) {
            problems.push(format!("cannot write {what} to standard output: {error}"));
        }
    }
}

fn write(place: &Place, what: &str, text: &str, out: &mut StandardOutput, problems: &mut Vec<String>) {
    match place {
        Place::StandardOutput => out.write(what, text, problems),
        Place::File(file) => {
            if let Err(error) = write_file(file, text.as_bytes()) {
                problems.push(unwritable(file, &error));
            }
        }
    }
}

fn unwritable(place: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {error}", place.display())
}
