//! The output files of a run: checked before the first request, written at the end.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use gatewright::report::{EvidenceFile, html, html_with_protocols, junit, sarif};
use gatewright::visible::visible;
use gatewright::whole_file::{check_place, same_place, write_file};
use gatewright_checkkit::{RunResult, write_evidence};

use crate::check::generated::check_flags::CheckFlags;
use crate::exit::Failure;
use crate::places::same_file;

pub(super) struct Outputs {
    report: OutputTarget,
    html: Option<OutputTarget>,
    junit: Option<OutputTarget>,
    sarif: Option<OutputTarget>,
    /// Of the additional checks, if there are any.
    protocols: Option<OutputTarget>,
    evidence: Option<PathBuf>,
    /// Whether a document with the report goes to standard output.
    prints_json: bool,
}

enum OutputTarget {
    StandardOutput,
    File(PathBuf),
}

impl OutputTarget {
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
    /// prints_json: whether `--json` takes standard output. inputs: the input files, with their options. No output may overwrite
    /// them.
    ///
    /// Errors: a file cannot be written, or two files would replace each other. It is better to know that before a run
    /// than after it.
    pub(super) fn new(
        flags: &CheckFlags,
        prints_json: bool,
        inputs: &[(&str, &Path)],
    ) -> Result<Self, Failure> {
        let report = OutputTarget::of(&flags.out);
        let of = |file: &Option<PathBuf>| file.as_deref().map(OutputTarget::of);
        let (html, junit, sarif) = (of(&flags.html), of(&flags.junit), of(&flags.sarif));
        let protocols = if flags.protocols.is_empty() { None } else { Some(beside(&report)?) };
        let places = [
            ("--out", Some(&report)),
            ("--html", html.as_ref()),
            ("--junit", junit.as_ref()),
            ("--sarif", sarif.as_ref()),
            ("--protocols", protocols.as_ref()),
        ];
        let places: Vec<(&str, &OutputTarget)> =
            places.into_iter().filter_map(|(option, place)| Some((option, place?))).collect();
        apart(&places, inputs)?;
        if let Some((option, _)) = places.iter().find(|(_, place)| prints_json && place.file().is_none()) {
            return Err(Failure::Usage(format!(
                "--json and {option} - both write to standard output: set {option} to a file"
            )));
        }
        for place in places.iter().filter_map(|(_, place)| place.file()) {
            check_place(place).map_err(|error| Failure::Usage(unwritable(place, &error)))?;
        }
        let evidence = flags.evidence.clone();
        if let Some(folder) = &evidence {
            std::fs::create_dir_all(folder)
                .and_then(|()| check_place(&folder.join("evidence.json")))
                .map_err(|error| Failure::Usage(unwritable(folder, &error)))?;
        }
        Ok(Self { report, html, junit, sarif, protocols, evidence, prints_json })
    }

    /// Whether one of the documents goes to standard output.
    pub(super) fn take_standard_output(&self) -> bool {
        let places = [Some(&self.report), self.html.as_ref(), self.junit.as_ref(), self.sarif.as_ref()];
        self.prints_json || places.into_iter().flatten().any(|place| place.file().is_none())
    }

    /// Where everything was written, for the user; empty if nothing is in a file.
    pub(super) fn places(&self) -> String {
        let of = |place: Option<&OutputTarget>| place.and_then(OutputTarget::file).map(Path::to_owned);
        let places = [
            ("report", of(Some(&self.report))),
            ("page", of(self.html.as_ref())),
            ("JUnit XML", of(self.junit.as_ref())),
            ("SARIF log", of(self.sarif.as_ref())),
            ("additional checks", of(self.protocols.as_ref())),
            ("evidence", self.evidence.clone()),
        ];
        let mut text = String::new();
        for (what, place) in places {
            if let Some(place) = place {
                let place = place.display().to_string();
                _ = writeln!(text, "Wrote the {what} to {}", visible(&place));
            }
        }
        text
    }

    /// Writes all files. A file that cannot be written does not stop the others. A report that cannot be written to its
    /// file goes to standard output.
    ///
    /// Errors: the files that could not be written.
    pub(super) fn write(&self, finished: &RunResult) -> Result<(), String> {
        let protocols = finished.protocols.as_ref();
        let mut problems = Vec::new();
        let document = finished.report.to_json();
        let mut out = StandardOutput::default();
        match &self.report {
            OutputTarget::StandardOutput => out.write("the report", &document, &mut problems),
            OutputTarget::File(place) => {
                if let Err(error) = write_file(place, document.as_bytes()) {
                    problems.push(format!(
                        "{}; the report was written to standard output instead",
                        unwritable(place, &error)
                    ));
                    // The document there contains it.
                    if !self.prints_json {
                        out.write("the report", &document, &mut problems);
                    }
                }
            }
        }
        let evidence = self.write_evidence(finished).unwrap_or_else(|problem| {
            problems.push(problem);
            Vec::new()
        });
        if let Some(place) = &self.html {
            let page = match protocols {
                Some(protocols) => html_with_protocols(&finished.report, &evidence, protocols),
                None => html(&finished.report, &evidence),
            };
            write(place, "the page", &page, &mut out, &mut problems);
        }
        if let Some(place) = &self.junit {
            write(place, "the JUnit XML", &junit(&finished.report), &mut out, &mut problems);
        }
        if let Some(place) = &self.sarif {
            let file = self.report.file().unwrap_or(Path::new("report.json")).to_string_lossy();
            write(place, "the SARIF log", &sarif(&finished.report, &file), &mut out, &mut problems);
        }
        if let (Some(place), Some(protocols)) = (&self.protocols, protocols) {
            write(place, "the additional checks", &protocols.to_json(), &mut out, &mut problems);
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\ngatewright: ")) }
    }

    /// The evidence, with the path from the page to each file.
    fn write_evidence(&self, finished: &RunResult) -> Result<Vec<EvidenceFile>, String> {
        let Some(folder) = &self.evidence else { return Ok(Vec::new()) };
        let names = write_evidence(folder, &finished.evidence).map_err(|error| unwritable(folder, &error))?;
        let way = EvidenceFile::way(self.html.as_ref().and_then(OutputTarget::file), folder)
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

/// The place of the additional checks: that of the report, with `.protocols` before its extension.
fn beside(report: &OutputTarget) -> Result<OutputTarget, Failure> {
    let Some(file) = report.file() else {
        let message = "--protocols writes a file beside the report: set --out to a file";
        return Err(Failure::Usage(message.to_owned()));
    };
    let is_json = file.extension().is_some_and(|extension| extension == "json");
    let stem = if is_json { file.file_stem() } else { file.file_name() };
    let mut name = stem.unwrap_or_default().to_owned();
    name.push(".protocols.json");
    Ok(OutputTarget::File(file.with_file_name(name)))
}

/// Errors: two outputs name the same file, or an output names an input. A report may replace its own baseline, which
/// has been read by then.
fn apart(places: &[(&str, &OutputTarget)], inputs: &[(&str, &Path)]) -> Result<(), Failure> {
    for (index, (option, place)) in places.iter().enumerate() {
        for (earlier, other) in &places[..index] {
            match (place, other) {
                (OutputTarget::StandardOutput, OutputTarget::StandardOutput) => {
                    return Err(Failure::Usage(format!(
                        "{earlier} and {option} are both -: only one document can go to standard output"
                    )));
                }
                (OutputTarget::File(file), OutputTarget::File(other)) if same_place(file, other) => {
                    return Err(same_file(earlier, option, file));
                }
                _ => {}
            }
        }
        for (input, read) in inputs {
            let renews = (*option, *input) == ("--out", "--baseline");
            if let Some(file) = place.file().filter(|file| !renews && same_place(file, read)) {
                return Err(same_file(input, option, file));
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
            problems.push(format!("{what} was not written: standard output has the report"));
            return;
        }
        let mut out = io::stdout().lock();
        if let Err(error) = out.write_all(document.as_bytes()).and_then(|()| out.flush()) {
            problems.push(format!("cannot write {what} to standard output: {error}"));
        }
    }
}

fn write(place: &OutputTarget, what: &str, text: &str, out: &mut StandardOutput, problems: &mut Vec<String>) {
    match place {
        OutputTarget::StandardOutput => out.write(what, text, problems),
        OutputTarget::File(file) => {
            if let Err(error) = write_file(file, text.as_bytes()) {
                problems.push(unwritable(file, &error));
            }
        }
    }
}

fn unwritable(place: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {error}", place.display())
}
