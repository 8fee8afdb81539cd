//! Our build at another commit, in a worktree below target/bench.

use std::fs;

use anyhow::{Context as _, Result};
use walkdir::WalkDir;

use super::installs::{OurPackages, folder};
use crate::process::{command, output, root, run};

/// Checks it out, adds this checkout's benchmark programs, builds and installs it.
pub(super) fn install(commit: &str) -> Result<OurPackages> {
    let revision = format!("{commit}^{{commit}}");
    let full = output(command("git").args(["rev-parse", "--verify", &revision]))
        .with_context(|| format!("{commit:?} is no commit"))?;
    let full = full.trim();
    let short = &full[..full.len().min(9)];
    let place = folder().join("commits").join(short);
    if !place.exists() {
        run(command("git").args(["worktree", "add", "--quiet", "--detach"]).arg(&place).arg(full))?;
    }
    overlay(&place.join("bench"))?;
    // One folder for all commits: most dependencies are the same.
    let ours = OurPackages::at(format!("ours at {short}"), place, folder().join("commits/target"));
    ours.install()?;
    Ok(ours)
}

/// Uses today's benchmark programs.
fn overlay(into: &std::path::Path) -> Result<()> {
    let source = root().join("bench");
    if into.exists() {
        fs::remove_dir_all(into)?;
    }
    for entry in WalkDir::new(&source).into_iter().filter_entry(|entry| entry.file_name() != "peers") {
        let entry = entry?;
        let place = into.join(entry.path().strip_prefix(&source)?);
        if entry.file_type().is_dir() {
            fs::create_dir_all(&place)?;
        } else {
            fs::copy(entry.path(), &place)?;
        }
    }
    Ok(())
}
