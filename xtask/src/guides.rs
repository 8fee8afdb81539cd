//! Runs the code of the guides, so that code copied from them works.
//!
//! The Python blocks of a guide form one script, which runs from top to bottom against a local gateway; so do its
//! JavaScript blocks. Its commands and files are walked through. Rust blocks are documentation tests of the crate `gatewright`, which run against the same
//! gateway.
//! `migrating.md` quotes scripts that its own step runs, see migration.rs. The tutorial, the handbook and the cookbook are
//! walked through, see walkthrough.rs; so are the pages about other clients, by their own step.

use std::path::Path;

use anyhow::{Context, Result};

use crate::artefacts::{self, python, target};
use crate::fences::{Block, blocks};
use crate::local_gateway::LocalGateway;
use crate::process::{cargo, command, files_of, output, root, run};
use crate::walkthrough::{self, Surroundings, Which, run_page};

/// Runs the code of every guide in docs/guides.
pub(crate) fn run_guides() -> Result<()> {
    let gateway = LocalGateway::start()?;
    let ours = Surroundings::ours()?;
    let work = target().join("guides");
    std::fs::create_dir_all(&work)?;
    artefacts::link_node_package(&work)?;
    for path in files_of(&root().join("docs/guides"), "md")? {
        let name = path.file_stem().and_then(|name| name.to_str()).context("a guide has a name")?;
        if name == "migrating" {
            continue;
        }
        let guide = std::fs::read_to_string(&path)?;
        run_blocks(&gateway, &work, name, &guide)?;
        walkthrough::run_blocks(&path, Which::Shell, &ours, Some(&gateway))?;
    }
    for name in ["python", "node"] {
        let page = std::fs::read_to_string(root().join(format!("docs/reference/{name}.md")))?;
        run_blocks(&gateway, &work, &format!("reference-{name}"), &page)?;
    }
    run_walkthroughs(&gateway, &ours)?;
    // A plain `cargo test --doc` has no gateway and omits these tests.
    run(gateway.reach_from(cargo().env("RUSTDOCFLAGS", "--cfg guides").args([
        "test",
        "--doc",
        "--workspace",
        "--all-features",
        "guides",
    ])))
}

/// Runs the pages that are walked through from top to bottom.
fn run_walkthroughs(gateway: &LocalGateway, ours: &Surroundings) -> Result<()> {
    for page in ["docs/tutorial.md", "cli/README.md"] {
        run_page(&root().join(page), ours, None)?;
    }
    for page in files_of(&root().join("docs/handbook"), "md")? {
        run_page(&page, ours, None)?;
    }
    for page in files_of(&root().join("docs/cookbook"), "md")? {
        run_page(&page, ours, Some(gateway))?;
    }
    for page in ["bindings-python/README.md", "bindings-node/README.md"] {
        run_page(&root().join(page), ours, Some(gateway))?;
    }
    Ok(())
}

fn run_blocks(gateway: &LocalGateway, work: &Path, name: &str, guide: &str) -> Result<()> {
    for (language, extension) in [("python", "py"), ("js", "mjs")] {
        let blocks: Vec<Block> = blocks(guide)?.into_iter().filter(|block| block.info == language).collect();
        if blocks.is_empty() {
            continue;
        }
        eprintln!("    docs/guides/{name}.md: {} {language} blocks", blocks.len());
        // Blank lines replace the text in between, so that a traceback names the guide's lines.
        let mut script = String::new();
        for block in &blocks {
            let above = script.lines().count();
            script += &"\n".repeat(block.line.checked_sub(above).context("blocks are in order")?);
            script += &block.text;
        }
        let path = work.join(name).with_extension(extension);
        std::fs::write(&path, script)?;
        let mut program = if extension == "py" { python() } else { command("node") };
        output(gateway.reach_from(program.current_dir(work).arg(&path)))
            .with_context(|| format!("docs/guides/{name}.md, its {language} blocks from top to bottom"))?;
    }
    Ok(())
}
