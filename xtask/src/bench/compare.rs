//! Our build at another commit, in a worktree below target/bench.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use walkdir::WalkDir;

use super::installs::{OurPackages, folder};
use crate::artefacts::SERVER;
use crate::building::build;
use crate::process::{cargo, command, output, root, run, step};

/// Checks it out, adds this checkout's benchmark programs, builds and installs it.
pub(super) fn install(commit: &str) -> Result<OurPackages> {
    let (short, place) = check_out(commit)?;
    overlay(&place.join("bench"))?;
    // One folder for all commits: most dependencies are the same.
    forget_our_crates(&folder().join("commits/target"))?;
    let ours = OurPackages::at(format!("ours at {short}"), place, folder().join("commits/target"));
    ours.install()?;
    Ok(ours)
}

/// The gateway's program of this checkout, and of another commit. Both are built with the release profile and without
/// link-time optimization, which triples the build time.
pub(super) fn programs(commit: &str) -> Result<[PathBuf; 2]> {
    let (short, place) = check_out(commit)?;
    Ok([program("here", &root())?, program(&short, &place)?])
}

fn program(name: &str, checkout: &Path) -> Result<PathBuf> {
    let commits = folder().join("commits");
    let built = commits.join("target");
    forget_our_crates(&built)?;
    step(&format!("build the gateway, {name}"), || {
        let mut cargo = cargo();
        cargo.current_dir(checkout).env("CARGO_TARGET_DIR", &built);
        build(cargo.args(["build", "--release", "-p", SERVER]))
    })?;
    let program = commits.join(format!("{SERVER}-{name}"));
    fs::copy(built.join("release").join(SERVER), &program)?;
    Ok(program)
}

/// Has cargo build our crates again: it recognizes a crate by its path below the workspace, so that it would take what another
/// checkout built for its own.
fn forget_our_crates(target: &Path) -> Result<()> {
    for entry in WalkDir::new(target).max_depth(4) {
        let Ok(entry) = entry else { continue };
        let is_fingerprint = entry.path().parent().is_some_and(|folder| folder.ends_with(".fingerprint"));
        if is_fingerprint && entry.file_name().to_string_lossy().starts_with("gatewright") {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Checks a commit out. Returns its abbreviated hash and its folder.
fn check_out(commit: &str) -> Result<(String, PathBuf)> {
    let revision = format!("{commit}^{{commit}}");
    let full = output(command("git").args(["rev-parse", "--verify", &revision]))
        .with_context(|| format!("{commit:?} is no commit"))?;
    let full = full.trim();
    let short = full[..full.len().min(9)].to_owned();
    let place = folder().join("commits").join(&short);
    if !place.exists() {
        run(command("git").args(["worktree", "add", "--quiet", "--detach"]).arg(&place).arg(full))?;
    }
    Ok((short, place))
}

/// Uses today's benchmark programs.
fn overlay(into: &Path) -> Result<()> {
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
