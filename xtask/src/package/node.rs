//! The npm packages: the main one, and one for the engine of each platform.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::artefacts::{build_node_package, is_built, node_package, npm_ci, target};
use crate::process::{command, files_of, output, root, run};

/// A row of bindings-node/platforms.json.
#[derive(Deserialize)]
struct Platform {
    target: String,
}

/// The name of a target's platform, as used in its package.
pub(super) fn platform_of(triple: &str) -> Result<String> {
    let text = fs::read_to_string(root().join("bindings-node/platforms.json"))?;
    let platforms: BTreeMap<String, Platform> = serde_json::from_str(&text).context("platforms.json")?;
    let found = platforms.into_iter().find(|(_, platform)| platform.target == triple);
    let (name, _) = found.with_context(|| format!("bindings-node/platforms.json has no target {triple}"))?;
    Ok(name)
}

/// Packs the main package and a platform's. built: the folder of the addon below the target folder.
pub(super) fn pack(built: &str, platform: &str, into: &Path) -> Result<()> {
    // If the tests run on it, it stays unchanged.
    if !is_built() {
        build_node_package(&root().join("bindings-node"), &target(), built)?;
    }
    if platform
        != output(node_package("node").args(["-p", "require('./dist/platform').platformName()"]))?.trim()
    {
        run(node_package("npm").args(["run", "--silent", "engine", "--", built, platform]))?;
    }
    for kind in ["main", "platform"] {
        pack_folder(&lay_out(kind, platform, None)?, into)?;
    }
    Ok(())
}

/// Packs a platform's package with an engine other than the checkout's, which [`pack`] has put there.
pub(super) fn pack_engine(engine: &Path, platform: &str, into: &Path) -> Result<()> {
    let folder = lay_out("platform", platform, None)?;
    fs::copy(engine, folder.join(format!("gatewright.{platform}.node")))?;
    pack_folder(&folder, into)
}

/// Packs the packages of the server. built: the folder of its program.
pub(super) fn pack_server(built: &Path, platform: &str, into: &Path) -> Result<()> {
    for kind in ["server", "server-platform"] {
        pack_folder(&lay_out(kind, platform, Some(built))?, into)?;
    }
    Ok(())
}

/// Lays out a package as for the registry; returns its folder. See bindings-node/scripts/lay-out.cjs.
fn lay_out(kind: &str, platform: &str, built: Option<&Path>) -> Result<PathBuf> {
    let folder = target().join("npm").join(kind);
    run(node_package("node").args(["scripts/lay-out.cjs", kind]).arg(&folder).arg(platform).args(built))?;
    Ok(folder)
}

fn pack_folder(folder: &Path, into: &Path) -> Result<()> {
    fs::create_dir_all(into)?;
    run(command("npm").current_dir(folder).args(["pack", "--silent", "--pack-destination"]).arg(into))
}

/// Installs tarballs into a folder. The packages of other platforms that they name are missing, but optional.
pub(super) fn install(tarballs: &[PathBuf], into: &Path) -> Result<()> {
    run(command("npm")
        .current_dir(into)
        .args(["install", "--silent", "--no-audit", "--no-fund", "--offline"])
        .args(tarballs))
}

/// The tarballs in a folder: the main package's, and the platforms'.
pub(super) fn tarballs(folder: &Path) -> Result<(PathBuf, Vec<PathBuf>)> {
    let is_main = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix("gatewright-")
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    let (main, platforms): (Vec<_>, Vec<_>) = files_of(folder, "tgz")?.into_iter().partition(is_main);
    match (<[PathBuf; 1]>::try_from(main), platforms) {
        (Ok([main]), platforms) if !platforms.is_empty() => Ok((main, platforms)),
        (main, platforms) => {
            let main = main.map_or_else(|all| all.len(), |_| 1);
            bail!(
                "{}: {main} tarballs of the main package and {} of platforms",
                folder.display(),
                platforms.len()
            )
        }
    }
}

/// Checks that the tarballs pass public package linters, and that a bundle for browsers reports what is
/// wrong.
pub(super) fn lint(folder: &Path) -> Result<()> {
    let tools = root().join("tests/tools");
    npm_ci(&tools)?;
    let tool = |name: &str| command(tools.join("node_modules/.bin").join(name));
    let (main, platforms) = tarballs(folder)?;
    let types = |options: &[&str]| {
        run(tool("attw").arg(&main).args(["--format", "ascii", "--no-emoji"]).args(options))
    };
    types(&["--entrypoints", "."])?;
    // What generated packages import is found by resolvers that know `exports`.
    types(&["--profile", "node16"])?;
    lint_each(&[platforms, vec![main]].concat())
}

/// Runs a public linter on each tarball.
pub(super) fn lint_each(tarballs: &[PathBuf]) -> Result<()> {
    let publint = root().join("tests/tools/node_modules/.bin/publint");
    for tarball in tarballs {
        run(command(&publint).arg("run").arg(tarball).args(["--strict", "--level", "warning"]))?;
    }
    Ok(())
}

/// Checks that a browser bundle of the installed package, made in `folder`, reports that it is not for browsers.
pub(super) fn refuse_browsers(folder: &Path) -> Result<()> {
    let program = "import { Client } from \"gatewright\"; console.log(new Client());\n";
    fs::write(folder.join("page.mjs"), program)?;
    run(command(root().join("tests/tools/node_modules/.bin/esbuild")).current_dir(folder).args([
        "page.mjs",
        "--bundle",
        "--platform=browser",
        "--format=iife",
        "--log-level=error",
        "--outfile=page.js",
    ]))?;
    let ran = command("node").current_dir(folder).arg("page.js").output()?;
    let stderr = String::from_utf8_lossy(&ran.stderr);
    if ran.status.success() || !stderr.contains("gatewright does not run in a browser") {
        bail!("a bundle for browsers should say that the package is not for them, and says:\n{stderr}");
    }
    Ok(())
}
