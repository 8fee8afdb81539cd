//! Writes the evidence of a run, one file per cell.

use std::io;
use std::path::Path;

use gatewright::report::{CheckId, Evidence};
use gatewright::whole_file::write_file;

/// Maximum length of a model id in a file name, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Writes one JSON file per piece of evidence into a folder, and creates the folder if it is missing. The number in the
/// name is the cell's index in `checks` of the report. Returns the file names, in the same order. Deletes evidence of
/// an earlier run, which would otherwise be shown with the cells of this one.
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

/// `02-responses_text-model-sol.json`: only letters, digits, dots, dashes and underscores, whatever the model id
/// contains.
fn evidence_name(index: usize, evidence: &Evidence) -> String {
    let plain =
        |letter: char| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
    let model: String =
        evidence.model.iter().flat_map(|model| model.chars()).map(plain).take(MAX_NAME_BYTES).collect();
    let dash = if model.is_empty() { "" } else { "-" };
    format!("{index:02}-{}{dash}{model}.json", evidence.id)
}

/// Whether a file name has the form of an evidence file.
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
    fn old_evidence_is_removed_and_other_files_remain() {
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
    fn evidence_file_names_are_sanitized_and_bounded() {
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
