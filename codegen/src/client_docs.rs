//! The reference of everything in the clients except operations: `docs/reference/python-client.md` and its counterparts. The pages
//! are written by hand, except for a part for each public name, which comes from the sources: its signature, arguments, errors
//! and example.
//!
//! A public name without the marks of its part on the page of its language is an error, and so are marks for a name that is not
//! public.

mod examples;
mod item;
mod page;
mod python;
mod rust;
mod typescript;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::model::File;
use super::write::{Output, part_marks};

/// Generates the parts of a page from the sources of its language.
type Reader = fn(&SourceFiles<'_>) -> Result<Vec<(String, String)>>;

/// The pages, and the generators of their parts.
const PAGES: [(&str, Reader); 3] = [
    ("docs/reference/python-client.md", python::parts),
    ("docs/reference/node-client.md", typescript::parts),
    ("docs/reference/rust-client.md", rust::parts),
];

/// The text before a public name in the marks of its part.
const PREFIX: &str = "reference of ";

/// The text of source files: of generated ones as they will be written, of all others as they are on disk.
pub(super) struct SourceFiles<'a> {
    root: &'a Path,
    generated: &'a Output,
}

impl SourceFiles<'_> {
    /// `path`: relative to the repository's root.
    fn text(&self, path: &str) -> Result<String> {
        if let Some(text) = self.generated.get(path) {
            return Ok(text.to_owned());
        }
        std::fs::read_to_string(self.root.join(path)).with_context(|| format!("cannot read {path}"))
    }

    fn has(&self, path: &str) -> bool {
        self.generated.get(path).is_some() || self.root.join(path).is_file()
    }
}

/// The parts of all pages. Errors: a page has marks for a name that is not public, or lacks those of one.
pub(super) fn emit(root: &Path, generated: &Output) -> Result<Vec<File>> {
    let sources = SourceFiles { root, generated };
    let mut files = Vec::new();
    for (path, reader) in PAGES {
        let parts = reader(&sources)?;
        let page = sources.text(path)?;
        let names: BTreeSet<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
        let marked: BTreeSet<&str> = marked_names(&page).collect();
        let unknown: Vec<&str> = marked.difference(&names).copied().collect();
        if !unknown.is_empty() {
            bail!("{path} has a place for what is not public: {}", unknown.join(", "));
        }
        let missing: String = names.difference(&marked).map(|name| marks(name)).collect();
        if !missing.is_empty() {
            bail!("{path} lacks what is public; put these lines where they belong:\n{missing}");
        }
        files.extend(parts.into_iter().map(|(name, contents)| File {
            path: path.to_owned(),
            part: Some(format!("{PREFIX}{name}")),
            contents,
        }));
    }
    Ok(files)
}

/// The marks of the part of a public name.
fn marks(name: &str) -> String {
    part_marks(&format!("{PREFIX}{name}")).concat()
}

/// The names for which a page has marks.
fn marked_names(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(|line| {
        let name = line.strip_prefix("<!-- ")?.strip_prefix(PREFIX)?;
        name.strip_suffix(": written by cargo xtask codegen -->")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_a_page_are_found() {
        let page = format!("# A\n{}\n{}", marks("Client"), marks("AsyncClient: client.images"));
        assert_eq!(marked_names(&page).collect::<Vec<_>>(), ["Client", "AsyncClient: client.images"]);
    }
}
