//! The sites of several versions in one folder: `VERSION/` has each, `latest/` the newest release's again, and `index.html` lists them.
//! Every page names its version, with a link to the list.

use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path};

use anyhow::{Context as _, Result, bail};
use semver::Version;
use walkdir::WalkDir;

/// That of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");
const LATEST: &str = "latest";
/// The book's title in docs/book.toml.
const TITLE: &str = "title = \"Gatewright\"\n";

/// The settings of the book, with the version in the title, which each page shows.
pub(super) fn with_title(settings: &str) -> Result<String> {
    if settings.matches(TITLE).count() != 1 {
        bail!("docs/book.toml has no line {TITLE:?}");
    }
    Ok(settings.replace(TITLE, &format!("title = \"Gatewright {VERSION}\"\n")))
}

/// Adds the site of this version to a folder, which may contain those of others.
pub(super) fn add(site: &Path, into: &Path) -> Result<()> {
    add_as(&VERSION.parse()?, site, into)
}

fn add_as(version: &Version, site: &Path, into: &Path) -> Result<()> {
    fs::create_dir_all(into)?;
    copy(site, &into.join(version.to_string()))?;
    let versions = versions(into)?;
    // A prerelease is the latest only if there is nothing else. A correction of an earlier version isn't the latest either.
    let newest = versions.iter().find(|version| version.pre.is_empty()).or(versions.first());
    if newest == Some(version) {
        copy(site, &into.join(LATEST))?;
    }
    Ok(fs::write(into.join("index.html"), list(&versions))?)
}

/// The versions in a folder, newest first.
fn versions(folder: &Path) -> Result<Vec<Version>> {
    let mut versions = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        versions.extend(name.to_str().and_then(|name| Version::parse(name).ok()));
    }
    versions.sort_by(|one, other| other.cmp(one));
    Ok(versions)
}

fn list(versions: &[Version]) -> String {
    let mut items = format!("<li><a href=\"{LATEST}/index.html\">latest</a></li>\n");
    for version in versions {
        _ = writeln!(items, "<li><a href=\"{version}/index.html\">{version}</a></li>");
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Documentation of Gatewright</title>\n<h1>Documentation of Gatewright</h1>\n<ul>\n{items}</ul>\n</html>\n"
    )
}

/// Copies a site in place of an earlier copy, with a link to the list in each page.
fn copy(site: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    for entry in WalkDir::new(site) {
        let entry = entry?;
        let path = entry.path().strip_prefix(site)?;
        let copied = to.join(path);
        if entry.file_type().is_dir() {
            fs::create_dir_all(&copied)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            let html = fs::read_to_string(entry.path())?;
            fs::write(&copied, linked(&html, path).with_context(|| path.display().to_string())?)?;
        } else {
            fs::copy(entry.path(), &copied)?;
        }
    }
    Ok(())
}

/// A page with a link to the list beside its title. Pages without a title, which lead elsewhere or are parts of others, have none.
fn linked(html: &str, path: &Path) -> Result<String> {
    const HEAD: &str = "<h1 class=\"menu-title\">";
    let Some((before, rest)) = html.split_once(HEAD) else { return Ok(html.to_owned()) };
    let (title, after) = rest.split_once("</h1>").context("the title has no end")?;
    let up = "../".repeat(path.components().filter(|part| matches!(part, Component::Normal(_))).count());
    Ok(format!("{before}{HEAD}{title} · <a href=\"{up}index.html\">versions</a></h1>{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(into: &Path, versions: &[&str]) {
        let site = tempfile::tempdir().expect("a folder");
        fs::create_dir(site.path().join("guides")).expect("a folder");
        for version in versions {
            let page = format!("<h1 class=\"menu-title\">Gatewright {version}</h1>");
            fs::write(site.path().join("index.html"), &page).expect("written");
            fs::write(site.path().join("guides/serve.html"), &page).expect("written");
            fs::write(site.path().join("style.css"), "").expect("written");
            add_as(&version.parse().expect("a version"), site.path(), into).expect("it is added");
        }
    }

    #[test]
    fn each_version_has_its_folder_and_the_newest_release_is_the_latest() {
        let into = tempfile::tempdir().expect("a folder");
        let read = |name: &str| fs::read_to_string(into.path().join(name)).expect(name);
        added(into.path(), &["0.1.0-rc.1"]);
        assert!(read("latest/index.html").contains("0.1.0-rc.1"));
        added(into.path(), &["0.2.0", "0.10.0", "0.2.1", "0.11.0-rc.1"]);
        assert!(read("latest/index.html").contains("Gatewright 0.10.0 "));
        assert!(read("0.2.1/guides/serve.html").contains("Gatewright 0.2.1 · <a href=\"../../index.html\">"));
        assert!(read("0.2.1/index.html").contains("<a href=\"../index.html\">versions</a></h1>"));
        assert_eq!(read("0.2.1/style.css"), "");
        let list = read("index.html");
        let places = ["latest", "0.11.0-rc.1", "0.10.0", "0.2.1", "0.2.0", "0.1.0-rc.1"];
        let places = places.map(|name| list.find(&format!("\"{name}/index.html\"")).expect(name));
        assert!(places.is_sorted(), "{list}");
    }

    #[test]
    fn title_of_the_book_gets_the_version() {
        let settings = fs::read_to_string(crate::process::root().join("docs/book.toml")).expect("the file");
        let titled = with_title(&settings).expect("it has a title");
        assert!(titled.contains(&format!("title = \"Gatewright {VERSION}\"")));
        assert!(with_title("title = \"Another\"\n").is_err());
    }
}
