//! Tests the move from the official SDKs: a script before and after, which differ only in the import and the
//! constructor, print the same output with the same gateway. The guide quotes these scripts.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::artefacts::{self, npm_ci, python};
use crate::local_gateway::LocalGateway;
use crate::process::{command, output, root, step};

/// Lines that begin like this may differ.
const CHANGED: [&str; 4] = ["from ", "import ", "client = ", "const client = "];

/// Compares the scripts of both languages, their text and their output, and the guide with the scripts.
pub(crate) fn compare() -> Result<()> {
    let folder = root().join("tests/migration");
    artefacts::pip_install(&folder.join("requirements.txt"))?;
    npm_ci(&folder)?;
    artefacts::link_node_package(&folder)?;
    let gateway = LocalGateway::start()?;
    for extension in ["py", "mjs"] {
        let script = |name: &str| folder.join(name).with_extension(extension);
        let (before, after) = (script("before"), script("after"));
        differ_only_where_they_may(&before, &after)?;
        let expected = step(&format!("before.{extension}"), || print(&gateway, &before))?;
        let printed = step(&format!("after.{extension}"), || print(&gateway, &after))?;
        if expected != printed {
            bail!("the official SDK prints\n{expected}\nand after.{extension}\n{printed}");
        }
    }
    check_guide(&folder)
}

fn print(gateway: &LocalGateway, script: &Path) -> Result<String> {
    let mut command: Command = match script.extension().and_then(|extension| extension.to_str()) {
        Some("py") => python(),
        _ => command("node"),
    };
    output(gateway.reach_from(command.arg(script)))
}

fn differ_only_where_they_may(before: &Path, after: &Path) -> Result<()> {
    let read = |path: &Path| std::fs::read_to_string(path).with_context(|| path.display().to_string());
    let (old, new) = (read(before)?, read(after)?);
    if old.lines().count() != new.lines().count() {
        bail!("{} and {} differ by whole lines", before.display(), after.display());
    }
    let changed: Vec<(&str, &str)> = old.lines().zip(new.lines()).filter(|(old, new)| old != new).collect();
    for (old, new) in &changed {
        if !CHANGED.iter().any(|start| old.starts_with(start) && new.starts_with(start)) {
            bail!(
                "only the import and the constructor may change, but this line changes too:\n- {old}\n+ {new}"
            );
        }
    }
    if changed.len() != 2 {
        bail!("{} lines differ: only the import and the constructor may", changed.len());
    }
    Ok(())
}

/// Every block of the guide is part of a script that was run.
fn check_guide(folder: &Path) -> Result<()> {
    let guide = std::fs::read_to_string(root().join("docs/guides/migrating.md"))?;
    for (language, extension) in [("python", "py"), ("js", "mjs")] {
        let mut scripts = String::new();
        for name in ["before", "after"] {
            scripts += &std::fs::read_to_string(folder.join(name).with_extension(extension))?;
        }
        for block in crate::fences::blocks(&guide)?.into_iter().filter(|block| block.info == language) {
            // A blank line between quoted statements marks an omission.
            for part in block.text.split("\n\n").filter(|part| !part.trim().is_empty()) {
                if !scripts.contains(part.trim_end()) {
                    bail!("migrating.md:{}: no script of tests/migration has this:\n{part}", block.line);
                }
            }
        }
    }
    Ok(())
}
