//! Installs packages as the pages instruct: runs the lines of their blocks for a clone, in a separate shell, on packages of
//! the debug profile.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::{node, python};
use crate::fences::blocks;
use crate::process::{command, files_of, root, run};

/// Pages that explain how to install from a clone. The packages are put where a line expects the clone.
const PAGES: [&str; 2] = ["README.md", "docs/tutorial.md"];
/// The command that builds the packages; the block for a clone contains it.
const MAKES: &str = "cargo xtask package";
/// Where the tutorial expects the clone, below the home folder.
const CLONE: &str = "gatewright";
/// What must work afterwards.
const USED: &str = "gatewright --version
gatewright keys --help >/dev/null
python -c 'import gatewright; gatewright.Client(api_key=\"any\")'
node --input-type=module -e 'import { Client } from \"gatewright\"; new Client({ apiKey: \"any\" });'
";

/// Errors: a line fails, or what it installs does not work. `place`: the folder of the step, after the packages with and
/// without the gateway were built.
pub(super) fn install(place: &Path) -> Result<()> {
    for page in PAGES {
        let lines =
            lines_of(&std::fs::read_to_string(root().join(page))?).with_context(|| page.to_owned())?;
        let home = place.join("as-documented").join(page.replace('/', "-"));
        let dist = home.join(CLONE).join("dist");
        std::fs::create_dir_all(&dist)?;
        for package in packages(place)? {
            let name = package.file_name().context("a file has a name")?;
            std::fs::copy(&package, dist.join(name))?;
        }
        eprintln!("    {page}: {} lines", lines.lines().count());
        // The README's lines run in the clone, the tutorial's in any folder.
        let here =
            if lines.contains(&format!("~/{CLONE}/")) { home.join("programs") } else { home.join(CLONE) };
        std::fs::create_dir_all(&here)?;
        // For a page that leaves the virtual environment to its reader.
        let environment =
            if lines.contains("-m venv") { "" } else { "python3 -m venv .venv && . .venv/bin/activate\n" };
        let mut bash = command("bash");
        bash.current_dir(&here).args(["-euo", "pipefail", "-c"]).arg(format!("{environment}{lines}{USED}"));
        // Neither needs a registry: the built packages are self-contained.
        bash.env("HOME", &home).env("PIP_NO_INDEX", "1").env("npm_config_offline", "true");
        run(bash.env("npm_config_audit", "false").env("npm_config_update_notifier", "false"))
            .with_context(|| page.to_owned())?;
    }
    Ok(())
}

/// What `cargo xtask package` writes to `dist`.
fn packages(place: &Path) -> Result<Vec<PathBuf>> {
    let mut all = vec![node::tarballs(place)?.0];
    for folder in ["lean", "server"].map(|name| place.join(name)) {
        python::only(&folder, "whl")?;
        for extension in ["whl", "tgz"] {
            all.extend(files_of(&folder, extension)?);
        }
    }
    Ok(all)
}

/// The lines of the block for a clone, except those with `cargo`: that builds packages with the release profile, which the
/// release workflow does, and what other steps build.
fn lines_of(page: &str) -> Result<String> {
    let blocks = blocks(page)?;
    let candidates: Vec<_> =
        blocks.iter().filter(|block| block.info.starts_with("sh") && block.text.contains(MAKES)).collect();
    let found = candidates.into_iter().find(|block| block.text.contains("pip install"));
    let text = &found.context("the page has no block that installs from a clone")?.text;
    let commands: Vec<_> = text.lines().filter(|line| !line.contains("cargo ")).collect();
    let commands = commands.join("\n") + "\n";
    for installer in ["pip install", "npm install"] {
        if !commands.contains(installer) {
            bail!("the block for a clone has no line with {installer}");
        }
    }
    Ok(commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn install_commands_come_from_the_pages() {
        for (page, installs) in PAGES.iter().zip(["pip install dist/", "pip install ~/gatewright/dist/"]) {
            let text = std::fs::read_to_string(root().join(page)).expect("the page is there");
            let lines = lines_of(&text).expect("it has a block for a clone");
            assert!(lines.contains(installs) && !lines.contains("cargo"), "{page}: {lines}");
        }
    }

    #[test]
    fn page_without_install_from_clone_is_an_error() {
        let registry = "```sh fragment\npip install gatewright\nnpm install gatewright\n```\n";
        assert!(lines_of(registry).is_err());
        let half = "```sh fragment\ncargo xtask package\npip install dist/a.whl\n```\n";
        assert!(lines_of(half).expect_err("npm is missing").to_string().contains("npm install"));
    }
}
