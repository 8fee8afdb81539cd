//! The crates, as crates.io gets them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::artefacts::target;
use crate::building::build;
use crate::process::{cargo, command, files_of, output, root, run};

/// Manifest members that crates.io displays or sorts by.
const DESCRIBED: [&str; 3] = ["description", "license", "readme"];

/// Packs every published crate, without building it, and checks the contents of the archives.
pub(super) fn check() -> Result<()> {
    let published = published()?;
    let names = published.iter().flat_map(|each| ["--package", &each.name]);
    run(cargo().args(["package", "--no-verify", "--locked", "--allow-dirty", "--quiet"]).args(names))?;
    let place = target().join("package-check/crates");
    fs::create_dir_all(&place)?;
    for Crate { name, version } in &published {
        let folder = place.join(format!("{name}-{version}"));
        run(command("tar").arg("-xzf").arg(archive(name, version)).arg("-C").arg(&place))?;
        check_contents(&folder).with_context(|| format!("the crate {name}"))?;
    }
    Ok(())
}

/// Builds every crate from the contents of its archive, in dependency order, and copies the archives.
pub(super) fn build_each(into: &Path) -> Result<()> {
    build(cargo().args(["publish", "--workspace", "--dry-run", "--locked", "--quiet"]))?;
    fs::create_dir_all(into)?;
    for Crate { name, version } in published()? {
        fs::copy(archive(&name, &version), into.join(format!("{name}-{version}.crate")))?;
    }
    Ok(())
}

fn archive(name: &str, version: &str) -> PathBuf {
    target().join("package").join(format!("{name}-{version}.crate"))
}

struct Crate {
    name: String,
    version: String,
}

/// The published crates of the workspace. Errors: one lacks what crates.io displays.
fn published() -> Result<Vec<Crate>> {
    let described = output(cargo().args(["metadata", "--no-deps", "--format-version", "1", "--locked"]))?;
    let described: Value = serde_json::from_str(&described)?;
    let packages = described["packages"].as_array().context("cargo describes packages")?;
    let mut published = Vec::new();
    for package in packages.iter().filter(|package| package["publish"].is_null()) {
        let name = package["name"].as_str().unwrap_or_default();
        let lacking: Vec<_> = DESCRIBED
            .into_iter()
            .filter(|member| package[member].as_str().is_none_or(str::is_empty))
            .chain(
                ["keywords", "categories"]
                    .into_iter()
                    .filter(|list| package[list].as_array().is_none_or(Vec::is_empty)),
            )
            .collect();
        if !lacking.is_empty() {
            bail!("the crate {name} is published, and its Cargo.toml lacks {}", lacking.join(", "));
        }
        let version = package["version"].as_str().unwrap_or_default();
        published.push(Crate { name: name.to_owned(), version: version.to_owned() });
    }
    Ok(published)
}

fn check_contents(folder: &Path) -> Result<()> {
    if fs::read(folder.join("LICENSE")).ok() != Some(fs::read(root().join("LICENSE"))?) {
        bail!("its LICENSE is not that of this repository");
    }
    if files_of(folder, "md")?.is_empty() {
        bail!("it has no README.md");
    }
    super::included::check(folder, folder)
}
