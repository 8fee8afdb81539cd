//! `cargo xtask demo`: builds everything, starts a gateway, and tells the same story from Rust, Python and Node.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::artefacts::{self, Examples, node_package, python, target};
use crate::local_gateway::LocalGateway;
use crate::process::{output, root, step};

/// Runs the demonstration and says where it left its files.
pub(crate) fn run_demo() -> Result<()> {
    artefacts::build_all(Examples::One("story"))?;
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
    artefacts::build_engines(&root(), Examples::All)?;
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

fn tell(gateway: &LocalGateway, language: &str, folder: &std::path::Path) -> Result<String> {
    let folder: PathBuf = folder.join(language.to_lowercase());
    std::fs::create_dir_all(&folder)?;
    let mut command: Command = match language {
        "Rust" => artefacts::example("story"),
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
