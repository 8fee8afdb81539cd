//! Writes files whole or not at all.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use gatewright::report::{CheckId, Evidence};
use gatewright::whole_file::{WholeFile, folder_of};

/// Longest part of a model's id that a file's name has, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Puts bytes in a place: beside it first, then over what is there. A place that is no regular file (a pipe, a
/// device) is written to as it is.
pub fn write_file(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let place = target(place);
    if std::fs::metadata(&place).is_ok_and(|found| !found.is_file()) {
        let mut file = std::fs::OpenOptions::new().write(true).open(&place)?;
        file.write_all(bytes)?;
        return file.flush();
    }
    let (mut file, whole) = begin(place)?;
    file.write_all(bytes)?;
    whole.land(file, true)
}

/// Whether a file could be written in this place now, without writing it.
pub fn check_place(place: &Path) -> io::Result<()> {
    let place = target(place);
    match std::fs::metadata(&place) {
        Ok(found) if found.is_dir() => Err(io::Error::other("it is a folder")),
        Ok(found) if !found.is_file() => Ok(()),
        _ => begin(place).map(drop),
    }
}

/// Whether two places are one file, there or not: what is written to the one would replace what is in the other. Two
/// ways to a pipe or a device are not: nothing is replaced there.
pub fn same_place(one: &Path, other: &Path) -> bool {
    let one = target(one);
    one == target(other) && std::fs::metadata(&one).map_or(true, |found| found.is_file())
}

/// Errors name the folder that is missing.
fn begin(place: PathBuf) -> io::Result<(File, WholeFile)> {
    let folder = folder_of(&place).to_owned();
    WholeFile::begin(place).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            io::Error::new(error.kind(), format!("there is no folder {}", folder.display()))
        }
        _ => error,
    })
}

/// Where a link leads, so that the link stays one; of a file that is not there yet, its folder's own path and its name.
fn target(place: &Path) -> PathBuf {
    let new = || Some(std::fs::canonicalize(folder_of(place)).ok()?.join(place.file_name()?));
    std::fs::canonicalize(place).ok().or_else(new).unwrap_or_else(|| place.to_owned())
}

/// Writes one JSON file per piece of evidence into a folder, which is made if it is missing. The number is the cell's
/// place in the report's `checks`. Gives the names of the files, in the same order. Evidence of an earlier run is taken
/// away: it would be shown with the cells of this one.
pub fn write_evidence(folder: &Path, evidence: &[(usize, Evidence)]) -> io::Result<Vec<String>> {
    std::fs::create_dir_all(folder)?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_evidence) {
            std::fs::remove_file(entry.path())?;
        }
    }
    let mut names = Vec::with_capacity(evidence.len());
    for (index, evidence) in evidence {
        let name = evidence_name(*index, evidence);
        let mut bytes = serde_json::to_vec_pretty(evidence)?;
        bytes.push(b'\n');
        write_file(&folder.join(&name), &bytes)?;
        names.push(name);
    }
    Ok(names)
}

/// `02-responses_text-model-sol.json`: letters, digits, dots, dashes and underscores, whatever the model's id holds.
fn evidence_name(index: usize, evidence: &Evidence) -> String {
    let plain =
        |letter: char| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
    let model: String =
        evidence.model.iter().flat_map(|model| model.chars()).map(plain).take(MAX_NAME_BYTES).collect();
    let dash = if model.is_empty() { "" } else { "-" };
    format!("{index:02}-{}{dash}{model}.json", evidence.id)
}

/// Whether a file's name is one that evidence gets.
fn is_evidence(name: &str) -> bool {
    let Some((number, rest)) = name.split_once('-') else { return false };
    number.len() >= 2
        && number.bytes().all(|digit| digit.is_ascii_digit())
        && CheckId::ALL.iter().any(|id| rest.starts_with(id.name()))
        && Path::new(rest).extension().is_some_and(|extension| extension == "json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("report.json");
        for text in ["first", "second"] {
            write_file(&place, text.as_bytes()).expect("written");
            assert_eq!(std::fs::read_to_string(&place).expect("read"), text);
        }
        assert_eq!(std::fs::read_dir(&folder).expect("listed").count(), 1);
    }

    #[test]
    fn missing_folder_and_folder_in_the_place_are_errors_before_and_after() {
        let folder = tempfile::tempdir().expect("a folder");
        for place in [folder.path().join("missing/report.json"), folder.path().to_owned()] {
            assert!(check_place(&place).is_err());
            assert!(write_file(&place, b"x").is_err());
        }
        assert!(check_place(&folder.path().join("report.json")).is_ok());
        assert_eq!(std::fs::read_dir(&folder).expect("listed").count(), 0);
    }

    #[test]
    fn missing_folder_is_named_and_no_temporary_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("missing");
        let expected = format!("there is no folder {}", missing.display());
        for error in [check_place(&missing.join("r.json")), write_file(&missing.join("r.json"), b"x")] {
            assert_eq!(error.expect_err("no folder").to_string(), expected);
        }
    }

    #[test]
    fn places_are_the_same_however_they_are_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("report.json");
        let roundabout = folder.path().join(".").join("report.json");
        for _ in ["before it is there", "after"] {
            assert!(same_place(&place, &roundabout));
            assert!(!same_place(&place, &folder.path().join("other.json")));
            std::fs::write(&place, "x").expect("written");
        }
        #[cfg(unix)]
        {
            let link = folder.path().join("latest.json");
            std::os::unix::fs::symlink(&place, &link).expect("linked");
            assert!(same_place(&place, &link));
            assert!(!same_place(Path::new("/dev/null"), Path::new("/dev/null")));
        }
    }

    #[cfg(unix)]
    #[test]
    fn link_stays_a_link_and_device_stays_a_device() {
        use std::os::unix::fs::FileTypeExt as _;

        let folder = tempfile::tempdir().expect("a folder");
        let (place, link) = (folder.path().join("report.json"), folder.path().join("latest.json"));
        write_file(&place, b"old").expect("written");
        std::os::unix::fs::symlink(&place, &link).expect("linked");
        write_file(&link, b"new").expect("written");
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&place).expect("read"), b"new");
        write_file(Path::new("/dev/null"), b"x").expect("written");
        let null = std::fs::metadata("/dev/null").expect("there");
        assert!(null.file_type().is_char_device());
    }

    /// A disk that is full.
    #[cfg(target_os = "linux")]
    #[test]
    fn full_disk_is_an_error() {
        assert!(check_place(Path::new("/dev/full")).is_ok());
        let error = write_file(Path::new("/dev/full"), b"x").expect_err("full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn evidence_of_an_earlier_run_is_taken_away_and_other_files_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let evidence = |id| Evidence { id, model: None, assertions: Vec::new(), exchange: None };
        let first = [(0, evidence(CheckId::ModelsEndpoint)), (2, evidence(CheckId::ResponsesText))];
        write_evidence(folder.path(), &first).expect("written");
        std::fs::write(folder.path().join("02-notes.json"), "mine").expect("written");
        write_evidence(folder.path(), &first[..1]).expect("written");
        let mut names: Vec<_> = std::fs::read_dir(&folder)
            .expect("listed")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["00-models_endpoint.json", "02-notes.json"]);
    }

    #[test]
    fn names_of_evidence_are_plain_whatever_the_model() {
        let evidence = |model: Option<&str>| Evidence {
            id: CheckId::ResponsesText,
            model: model.map(str::to_owned),
            assertions: Vec::new(),
            exchange: None,
        };
        assert_eq!(evidence_name(0, &evidence(None)), "00-responses_text.json");
        assert_eq!(evidence_name(12, &evidence(Some("a/../b:ü"))), "12-responses_text-a_.._b__.json");
        assert!(evidence_name(1, &evidence(Some(&"x".repeat(500)))).len() < 100);
    }
}
