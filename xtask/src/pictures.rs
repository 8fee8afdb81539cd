//! docs/pictures: checks that each picture is shown by a page, and that each one that a page shows exists.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use crate::fences::pages;
use crate::process::root;

/// Path before the name of a picture in a page.
const FOLDER: &str = "pictures/";

pub(crate) fn check() -> Result<()> {
    let mut shown = BTreeSet::new();
    for page in pages()? {
        shown.extend(named(&std::fs::read_to_string(root().join(page))?));
    }
    let mut present = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("docs/pictures"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        // The digests next to the pictures record what they were taken of.
        if !name.ends_with(".sha256") {
            present.insert(name);
        }
    }
    let list =
        |names: BTreeSet<&String>| names.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let (missing, unused) =
        (list(shown.difference(&present).collect()), list(present.difference(&shown).collect()));
    if !(missing.is_empty() && unused.is_empty()) {
        bail!("pages show pictures that are not there: [{missing}]; no page shows these: [{unused}]");
    }
    Ok(())
}

/// The names of the pictures that a page shows.
fn named(page: &str) -> Vec<String> {
    let ends = |letter: char| !(letter.is_ascii_alphanumeric() || "-_.".contains(letter));
    let links = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let pictures = links.filter_map(|link| Some(link.split_once(FOLDER)?.1));
    pictures.filter(|name| !name.is_empty() && !name.contains(ends)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_of_a_page_are_its_links() {
        let page = "![one\nline](../pictures/a-b.svg) and [c](pictures/c.png), not `pictures/d.png` or [e](pictures/)";
        assert_eq!(named(page), ["a-b.svg", "c.png"]);
    }

    #[test]
    fn every_picture_exists_and_is_linked() {
        check().expect("every picture exists and is linked");
    }
}
