//! `cargo xtask demo`: builds everything, starts a gateway, and tells the same story from Rust, Python and Node.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::artefacts::{self, node_package, python, target};
use crate::local_gateway::LocalGateway;
use crate::process::{cargo, output, root, run, step};

/// Runs the demonstration and says where it left its files.
pub(crate) fn run_demo() -> Result<()> {
    artefacts::build_all()?;
    step("build the Rust story", build_rust_story)?;
    let gateway = step("start a gateway", LocalGateway::start)?;
    eprintln!("    listening on {}", gateway.address());
    let folder = target().join("demo");
    for language in LANGUAGES {
        let told = step(&format!("the story, told from {language}"), || tell(&gateway, language, &folder))?;
        for line in told.lines() {
            eprintln!("    | {line}");
        }
    }
    eprintln!("==> done: the images and videos are in {}", folder.display());
    Ok(())
}

/// Tells the story from each language and fails unless all tell the same.
pub(crate) fn compare_stories() -> Result<()> {
    build_rust_story()?;
    let gateway = LocalGateway::start()?;
    let folder = target().join("demo");
    let mut first: Option<String> = None;
    for language in LANGUAGES {
        let told = tell(&gateway, language, &folder)?;
        match &first {
            None => first = Some(told),
            Some(rust) if *rust == told => {}
            Some(rust) => {
                bail!("{language} tells another story than Rust:\n--- Rust\n{rust}\n--- {language}\n{told}")
            }
        }
    }
    Ok(())
}

const LANGUAGES: [&str; 3] = ["Rust", "Python", "Node"];

fn build_rust_story() -> Result<()> {
    run(cargo().args(["build", "-p", "gatewright", "--example", "story"]))
}

fn tell(gateway: &LocalGateway, language: &str, folder: &std::path::Path) -> Result<String> {
    let folder: PathBuf = folder.join(language.to_lowercase());
    std::fs::create_dir_all(&folder)?;
    let mut command: Command = match language {
        "Rust" => crate::process::command(target().join("debug/examples/story")),
        "Python" => python(),
        _ => node_package("node"),
    };
    match language {
        "Python" => drop(command.arg(root().join("examples/python/story.py"))),
        "Node" => drop(command.arg(root().join("examples/node/story.mjs"))),
        _ => {}
    }
    output(gateway.reach_from(command.arg(&folder)))
}
