//! `cargo xtask book`: the documentation as a site, built by mdBook, with every link checked.
//!
//! docs/SUMMARY.md lists the pages, which are in several folders of the repository: `gathering` copies them to one folder and
//! turns the links between them; mdBook builds the site; `links` reads what was built.

mod gathering;
mod links;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::artefacts::target;
use crate::process::{cargo, command, output, root, run, step};

/// The release of mdBook.
const VERSION: &str = "0.5.4";

/// Builds the site and checks its links. Returns its first page.
pub(crate) fn build_book() -> Result<PathBuf> {
    let mdbook = step("install mdBook", install)?;
    let folder = target().join("book");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let pages = step("gather the pages", || gathering::gather(&root(), &folder.join("src")))?;
    std::fs::copy(root().join("docs/book.toml"), folder.join("book.toml"))
        .context("cannot copy docs/book.toml")?;
    step("build the site", || run(command(&mdbook).arg("build").arg(&folder)))?;
    let site = folder.join("book");
    step("check the links", || {
        let checked = links::check(&site)?;
        eprintln!("    {pages} pages, {checked} links");
        Ok(())
    })?;
    Ok(site.join("index.html"))
}

/// The command: builds the site and says where it is; opens it if asked to.
pub(crate) fn run_book(open: bool) -> Result<()> {
    let first = build_book()?;
    eprintln!("the site is in {}", first.display());
    if open {
        let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        run(command(opener).arg(&first))?;
    }
    Ok(())
}

/// mdBook's program, installed beside what cargo builds unless it is there. It is a tool and no dependency: nothing of it
/// is built into ours.
fn install() -> Result<PathBuf> {
    let tools = target().join("tools");
    let program = tools.join("bin/mdbook");
    if program.exists() && output(command(&program).arg("--version"))?.trim() == format!("mdbook v{VERSION}")
    {
        return Ok(program);
    }
    let mut install = cargo();
    // Neither watching nor serving, which bring most of its dependencies.
    install.args([
        "install",
        "mdbook",
        "--locked",
        "--no-default-features",
        "--features",
        "search",
        "--debug",
    ]);
    install.args(["--version", VERSION, "--force", "--root"]).arg(&tools);
    run(install.env("CARGO_TARGET_DIR", tools.join("build")))?;
    if !program.exists() {
        bail!("cargo installed no {}", program.display());
    }
    // Hundreds of megabytes that nothing reads again.
    std::fs::remove_dir_all(tools.join("build")).context("cannot remove what mdBook was built from")?;
    Ok(program)
}
