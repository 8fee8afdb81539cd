//! `cargo xtask book`: the documentation as a site, built by mdBook, with every link checked.
//!
//! docs/SUMMARY.md lists the pages, which are in several folders of the repository: `gathering` copies them to one folder
//! and rewrites the links between them; mdBook builds the site; `links` checks the result; `versions` puts it beside those of other
//! versions.

mod gathering;
mod links;
mod versions;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::artefacts::target;
use crate::installed::Tool;
use crate::process::{command, root, run, step};
use crate::{providers, reference};

/// Without watching and serving, which cause most of its dependencies.
const MDBOOK: Tool = Tool { name: "mdbook", version: "0.5.4", program: "mdbook", features: Some("search") };

/// Builds the site and checks its links. Returns its first page.
pub(crate) fn build_book() -> Result<PathBuf> {
    let mut mdbook = MDBOOK.installed()?;
    let folder = target().join("book");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    step("compare the pages of providers", || providers::generate(true))?;
    step("compare the reference of the configuration", || reference::generate(true))?;
    let pages = step("gather the pages", || gathering::gather(&root(), &folder.join("src")))?;
    let settings =
        std::fs::read_to_string(root().join("docs/book.toml")).context("cannot read docs/book.toml")?;
    std::fs::write(folder.join("book.toml"), versions::with_title(&settings)?)?;
    step("build the site", || run(mdbook.arg("build").arg(&folder)))?;
    let site = folder.join("book");
    step("check the links", || {
        let checked = links::check(&site)?;
        eprintln!("    {pages} pages, {checked} links");
        Ok(())
    })?;
    // As the release publishes it.
    step("check the links of the published site", || {
        let published = folder.join("published");
        versions::add(&site, &published)?;
        links::check(&published).map(drop)
    })?;
    Ok(site.join("index.html"))
}

/// The command: builds the site and prints its location; opens it if requested. `into`: a folder with the sites of other versions.
pub(crate) fn run_book(open: bool, into: Option<&Path>) -> Result<()> {
    let first = build_book()?;
    if let Some(into) = into {
        let site = first.parent().context("the first page is in the site")?;
        step("put it beside other versions", || versions::add(site, into))?;
    }
    eprintln!("the site is in {}", first.display());
    if open {
        let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        run(command(opener).arg(&first))?;
    }
    Ok(())
}
