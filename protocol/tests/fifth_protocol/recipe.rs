//! The recipe for a protocol in CONTRIBUTING.md names every file that a protocol has, and no other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gatewright_protocol::conversation::Protocol;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The text of the recipe.
fn recipe() -> String {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
    let (_, recipe) = text.split_once(". Add a protocol\n").expect("the recipe");
    recipe.split("\n### ").next().unwrap_or_default().to_owned()
}

/// The names in backquotes of the first column of its table.
fn files() -> Vec<String> {
    let recipe = recipe();
    let rows = recipe.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.map(|row| row.split(" | ").next().unwrap_or_default());
    let names = cells.flat_map(|cell| cell.split('`').filter(|name| name.contains(['/', '.'])));
    names.map(str::to_owned).collect()
}

/// The files of a protocol that the recipe names, without the folder.
fn files_of_protocol() -> BTreeSet<String> {
    files().iter().filter_map(|file| file.strip_prefix("protocol/src/NAME/")).map(str::to_owned).collect()
}

#[test]
fn every_file_of_the_recipe_exists() {
    for file in files() {
        for protocol in Protocol::OF_CLIENTS {
            let file = file.replace("NAME", protocol.name());
            assert!(root().join(&file).exists(), "{file} is missing");
        }
    }
}

#[test]
fn the_fifth_protocol_has_the_files_of_the_recipe() {
    let folder = root().join("protocol/tests/fifth_protocol/lines");
    let entries = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").file_name());
    let has: BTreeSet<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    assert_eq!(has, files_of_protocol());
}
