//! The console of the gateway, as files for browsers. `cargo xtask console` builds them from `console/app` (TypeScript, for
//! which `operations.ts` reads the specification) into `src/built`, compressed, so that building this crate needs no Node.
//! `console/test` tests the page in Chromium.
//!
//! ```
//! let page = gatewright_console::page();
//! assert!(page.kind.starts_with("text/html"));
//! assert!(page.plain().starts_with(b"<!doctype html>"));
//! ```
//!
//! It has no stable interface: it is part of the program `gatewright` (`gatewright serve`). Use that instead.

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
    /// Its path below the console's path, such as `assets/index-B2x9.js`. All names except the page's contain the hash of
    /// the content.
    pub name: &'static str,
    /// Its media type.
    pub kind: &'static str,
    /// Its content, compressed with gzip.
    pub gzip: &'static [u8],
}

impl File {
    /// The uncompressed content. It is decompressed only once.
    #[expect(clippy::missing_panics_doc, reason = "the files are valid gzip")]
    pub fn plain(&self) -> &'static [u8] {
        static PLAIN: [OnceLock<Vec<u8>>; built::FILES.len()] =
            [const { OnceLock::new() }; built::FILES.len()];
        let place = built::FILES.iter().position(|file| file.name == self.name);
        PLAIN[place.expect("it is one of the files")].get_or_init(|| {
            let mut plain = Vec::new();
            GzDecoder::new(self.gzip).read_to_end(&mut plain).expect("the files are valid gzip");
            plain
        })
    }
}

/// The page.
#[expect(clippy::missing_panics_doc, reason = "a test checks it")]
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

    /// The limit for all files together, including the reference.
    const MAX_BYTES: usize = 300 * 1024;

    #[test]
    fn every_file_decompresses_and_the_total_is_bounded() {
        for file in files() {
            assert!(!file.plain().is_empty(), "{}", file.name);
        }
        let sum: usize = files().iter().map(|file| file.gzip.len()).sum();
        assert!(sum < MAX_BYTES, "{sum} bytes");
    }

    #[test]
    fn page_refers_only_to_console_files() {
        let page = str::from_utf8(page().plain()).expect("text");
        let names: Vec<&str> = page.split(['"']).filter_map(|part| part.strip_prefix("/console/")).collect();
        assert!(names.len() >= 2, "{page}");
        for name in names {
            assert!(file(name).is_some(), "{name}");
        }
        assert!(!page.contains("://"), "{page}");
    }
}
