//! `cargo xtask book`: the documentation as a site, built by mdBook, with every link checked.
//!
//! docs/SUMMARY.md lists the pages, which are in several folders of the repository: `gathering` copies them to one folder
//! and rewrites the links between them; mdBook builds the site; `links` checks the result.

mod gathering;
mod links;

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::artefacts::target;
use crate::installed::Tool;
use crate::process::{command, root, run, step};
use crate::providers;

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
    let pages = step("gather the pages", || gathering::gather(&root(), &folder.join("src")))?;
    std::fs::copy(root().join("docs/book.toml"), folder.join("book.toml"))
        .context("cannot copy docs/book.toml")?;
    step("build the site", || run(mdbook.arg("build").arg(&folder)))?;
    let site = folder.join("book");
    step("check the links", || {
        let checked = links::check(&site)?;
        eprintln!("    {pages} pages, {checked} links");
        Ok(())
    })?;
    Ok(site.join("index.html"))
}

/// The command: builds the site and prints its location; opens it if requested.
pub(crate) fn run_book(open: bool) -> Result<()> {
    let first = build_book()?;
    eprintln!("the site is in {}", first.display());
    if open {
        let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        run(command(opener).arg(&first))?;
    }
    Ok(())
}
