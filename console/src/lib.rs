//! The console of the gateway, as files for browsers. `cargo xtask console` makes them of `console/app`, so that building
//! this crate needs no Node.
//!
//! ```
//! let page = gatewright_console::page();
//! assert!(page.kind.starts_with("text/html"));
//! assert!(page.plain().starts_with(b"<!doctype html>"));
//! ```
//!
//! It has no stable interface: it is a part of the program `gatewright` (`gatewright serve`), which is what people
//! use.

#[rustfmt::skip]
mod built;

use std::io::Read as _;
use std::sync::OnceLock;

use flate2::read::GzDecoder;

/// Name of the page itself.
const PAGE: &str = "index.html";

/// A file of the console.
#[derive(Debug, Clone, Copy)]
pub struct File {
    /// Its path below the place of the console, such as `assets/index-B2x9.js`. All but the page have the hash of their
    /// content in their names.
    pub name: &'static str,
    /// Its media type.
    pub kind: &'static str,
    /// Its content, compressed with gzip.
    pub gzip: &'static [u8],
}

impl File {
    /// The content as it was before it was compressed. It is made once.
    #[expect(clippy::missing_panics_doc, reason = "what was compressed here can be read")]
    pub fn plain(&self) -> &'static [u8] {
        static PLAIN: [OnceLock<Vec<u8>>; built::FILES.len()] =
            [const { OnceLock::new() }; built::FILES.len()];
        let place = built::FILES.iter().position(|file| file.name == self.name);
        PLAIN[place.expect("it is one of them")].get_or_init(|| {
            let mut plain = Vec::new();
            GzDecoder::new(self.gzip).read_to_end(&mut plain).expect("files of the console are whole");
            plain
        })
    }
}

/// The page.
#[expect(clippy::missing_panics_doc, reason = "a test holds it")]
pub fn page() -> &'static File {
    file(PAGE).expect("the console has a page")
}

/// A file by its name.
pub fn file(name: &str) -> Option<&'static File> {
    built::FILES.iter().find(|file| file.name == name)
}

/// All files.
pub fn files() -> &'static [File] {
    built::FILES
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What all pages but the reference take, and the reference: see the decision.
    const MAX_BYTES: usize = 300 * 1024;

    #[test]
    fn every_file_can_be_read_and_all_are_small() {
        for file in files() {
            assert!(!file.plain().is_empty(), "{}", file.name);
        }
        let sum: usize = files().iter().map(|file| file.gzip.len()).sum();
        assert!(sum < MAX_BYTES, "{sum} bytes");
    }

    #[test]
    fn the_page_names_only_files_of_the_console() {
        let page = str::from_utf8(page().plain()).expect("text");
        let names: Vec<&str> = page.split(['"']).filter_map(|part| part.strip_prefix("/console/")).collect();
        assert!(names.len() >= 2, "{page}");
        for name in names {
            assert!(file(name).is_some(), "{name}");
        }
        assert!(!page.contains("://"), "{page}");
    }
}
