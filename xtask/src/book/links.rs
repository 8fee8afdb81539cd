//! Checks that every link of a built site leads to a file of the site, and every anchor to an element of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use html5gum::{Token, Tokenizer};
use walkdir::WalkDir;

/// Attributes that contain a URL.
const ADDRESSES: [&[u8]; 4] = [b"href", b"src", b"srcset", b"poster"];

/// A page's anchors and links.
#[derive(Debug, Default)]
struct Page {
    anchors: BTreeSet<String>,
    links: Vec<String>,
}

impl Page {
    fn read(html: &str) -> Self {
        let mut page = Self::default();
        for token in Tokenizer::new(html) {
            let Ok(Token::StartTag(tag)) = token else { continue };
            for (name, value) in &tag.attributes {
                let value = String::from_utf8_lossy(value).into_owned();
                if ***name == *b"id" || (***name == *b"name" && **tag.name == *b"a") {
                    page.anchors.insert(value);
                } else if ADDRESSES.contains(&&***name) {
                    page.links.push(value);
                }
            }
        }
        page
    }
}

/// Reads all pages of a site. Returns the number of links. Errors: broken links, each with its page.
pub(super) fn check(site: &Path) -> Result<usize> {
    let mut pages = BTreeMap::new();
    let mut files = BTreeSet::new();
    for entry in WalkDir::new(site) {
        let entry = entry?;
        let path = entry.path().strip_prefix(site)?.to_owned();
        // Served for any URL that doesn't exist, so its links are relative to the top of the host.
        if path.file_name().is_some_and(|name| name == "404.html") {
            continue;
        }
        if path.extension().is_some_and(|extension| extension == "html") {
            let html = std::fs::read_to_string(entry.path()).with_context(|| path.display().to_string())?;
            pages.insert(path.clone(), Page::read(&html));
        }
        if entry.file_type().is_file() {
            files.insert(path);
        }
    }
    let mut dead = Vec::new();
    let mut checked = 0;
    for (path, page) in &pages {
        for link in &page.links {
            checked += 1;
            if let Some(why) = problem(path, link, &pages, &files) {
                dead.push(format!("{}: {link}: {why}", path.display()));
            }
        }
    }
    if !dead.is_empty() {
        bail!("{}\n{} dead links", dead.join("\n"), dead.len());
    }
    Ok(checked)
}

fn problem(
    path: &Path,
    link: &str,
    pages: &BTreeMap<PathBuf, Page>,
    files: &BTreeSet<PathBuf>,
) -> Option<&'static str> {
    let has_scheme = link
        .split_once(':')
        .is_some_and(|(scheme, _)| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    if has_scheme {
        return link.starts_with("javascript:").then_some("a link runs a script");
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let mut target = path.to_owned();
    if !file.is_empty() {
        target.pop();
        for part in Path::new(file).components() {
            match part {
                Component::Normal(part) => target.push(part),
                Component::ParentDir if !target.pop() => return Some("it leaves the site"),
                Component::RootDir => return Some("it depends on where the site is"),
                _ => {}
            }
        }
        if file.ends_with('/') {
            target.push("index.html");
        }
    }
    if !files.contains(&target) {
        return Some("there is no such file");
    }
    let known = pages.get(&target).is_none_or(|page| anchor.is_empty() || page.anchors.contains(anchor));
    (!known).then_some("there is no such place in the file")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(pages: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, html) in pages {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("it is made");
            std::fs::write(path, html).expect("it is written");
        }
        folder
    }

    #[test]
    fn valid_links_to_files_and_anchors_pass() {
        let folder = site(&[
            (
                "index.html",
                "<a href=\"a/b.html#here\">b</a><img src=\"c.svg\"><a href=\"https://a.example/x\">x</a>",
            ),
            ("a/b.html", "<h2 id=\"here\">b</h2><a href=\"../index.html\">i</a><a href=\"#here\">h</a>"),
            ("c.svg", "<svg/>"),
        ]);
        assert_eq!(check(folder.path()).expect("no dead links"), 5);
    }

    #[test]
    fn dead_links_are_reported_with_their_page() {
        let folder = site(&[
            ("index.html", "<a href=\"b.html\">b</a><a href=\"a.html#there\">a</a><a href=\"../x\">x</a>"),
            ("a.html", "<h2 id=\"here\">a</h2><a href=\"/index.html\">i</a>"),
        ]);
        let error = check(folder.path()).expect_err("dead links").to_string();
        assert_eq!(
            error,
            "a.html: /index.html: it depends on where the site is\nindex.html: b.html: there is no such file\n\
             index.html: a.html#there: there is no such place in the file\nindex.html: ../x: it leaves the site\n\
             4 dead links"
        );
    }
}
