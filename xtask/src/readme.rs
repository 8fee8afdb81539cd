//! Runs the README's code blocks against a gateway: what a reader copies must work.

use std::path::Path;

use anyhow::{Result, bail};

use crate::artefacts::{python, target};
use crate::local_gateway::LocalGateway;
use crate::process::{cargo, command, output, root};

/// Runs every rust, python and js block of README.md; each must exit with success and print something.
pub(crate) fn run_readme() -> Result<()> {
    let text = std::fs::read_to_string(root().join("README.md"))?;
    let work = target().join("readme");
    std::fs::create_dir_all(&work)?;
    let gateway = LocalGateway::start()?;
    for language in ["rust", "python", "js"] {
        let blocks = blocks_of(&text, language);
        if blocks.is_empty() {
            bail!("README.md has no {language} block");
        }
        for (index, block) in blocks.iter().enumerate() {
            eprintln!("    {language} block {}", index + 1);
            let mut program = match language {
                "rust" => rust_program(&work, block)?,
                "python" => {
                    let mut program = python();
                    program.args(["-c", block]);
                    program
                }
                _ => node_program(&work, block)?,
            };
            let printed = output(gateway.reach_from(program.current_dir(&work)))?;
            if printed.trim().is_empty() {
                bail!("{language} block {} of README.md prints nothing", index + 1);
            }
        }
    }
    Ok(())
}

fn blocks_of(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    text.split(&fence)
        .skip(1)
        .filter_map(|rest| rest.split_once("\n```").map(|(block, _)| block.to_owned()))
        .collect()
}

// A package of its own, as a reader's would be, which shares the workspace's lock file and target folder.
fn rust_program(work: &Path, block: &str) -> Result<std::process::Command> {
    let package = work.join("rust");
    std::fs::create_dir_all(package.join("src"))?;
    let core = root().join("core");
    std::fs::write(
        package.join("Cargo.toml"),
        format!(
            "[package]\nname = \"readme\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
             futures-util = {{ version = \"0.3\", default-features = false }}\n\
             gatewright = {{ path = \"{}\" }}\nserde_json = \"1\"\n\
             tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}\n",
            core.display()
        ),
    )?;
    std::fs::copy(root().join("Cargo.lock"), package.join("Cargo.lock"))?;
    std::fs::write(package.join("src/main.rs"), block)?;
    crate::process::run(
        cargo().current_dir(&package).env("CARGO_TARGET_DIR", target()).args(["build", "--quiet"]),
    )?;
    Ok(command(target().join("debug/readme")))
}

fn node_program(work: &Path, block: &str) -> Result<std::process::Command> {
    let package = work.join("node_modules/gatewright");
    if !package.exists() {
        std::fs::create_dir_all(work.join("node_modules"))?;
        std::os::unix::fs::symlink(root().join("bindings-node"), &package)?;
    }
    let file = work.join("block.mjs");
    std::fs::write(&file, block)?;
    let mut program = command("node");
    program.arg(file);
    Ok(program)
}
