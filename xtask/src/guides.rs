//! Runs the code of the guides, so that code copied from them works.
//!
//! The Python blocks of a guide form one script, which runs from top to bottom against a local gateway; so do its
//! JavaScript blocks. Rust blocks are documentation tests of the crate `gatewright`, which run against the same
//! gateway.
//! `migrating.md` quotes scripts that its own step runs, see migration.rs. The tutorial, the handbook and the cookbook are
//! walked through, see walkthrough.rs; so are the pages about other clients, by their own step.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::artefacts::{self, python, target};
use crate::local_gateway::LocalGateway;
use crate::process::{cargo, command, files_of, output, root, run};
use crate::walkthrough::{Surroundings, run_page};

/// A fenced block of a guide.
pub(crate) struct Block {
    /// Line of the fence, from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// Blocks whose fence names only the language; other blocks are not run.
pub(crate) fn blocks(guide: &str, language: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut inside: Option<bool> = None;
    for (index, line) in guide.lines().enumerate() {
        match (inside, line.strip_prefix("```")) {
            (None, Some(info)) => {
                let wanted = info.trim() == language;
                inside = Some(wanted);
                if wanted {
                    found.push(Block { line: index + 1, text: String::new() });
                }
            }
            (Some(_), Some(_)) => inside = None,
            (Some(true), None) => {
                let block = found.last_mut().expect("pushed where it began");
                block.text += line;
                block.text.push('\n');
            }
            _ => {}
        }
    }
    found
}

/// Runs the code of every guide in docs/guides.
pub(crate) fn run_guides() -> Result<()> {
    let gateway = LocalGateway::start()?;
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
    }
    for name in ["python", "node"] {
        let page = std::fs::read_to_string(root().join(format!("docs/reference/{name}.md")))?;
        run_blocks(&gateway, &work, &format!("reference-{name}"), &page)?;
    }
    run_walkthroughs(&gateway)?;
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
fn run_walkthroughs(gateway: &LocalGateway) -> Result<()> {
    let ours = Surroundings::ours()?;
    run_page(&root().join("docs/tutorial.md"), &ours, None)?;
    for page in files_of(&root().join("docs/handbook"), "md")? {
        run_page(&page, &ours, None)?;
    }
    for page in files_of(&root().join("docs/cookbook"), "md")? {
        run_page(&page, &ours, Some(gateway))?;
    }
    Ok(())
}

fn run_blocks(gateway: &LocalGateway, work: &Path, name: &str, guide: &str) -> Result<()> {
    for (language, extension) in [("python", "py"), ("js", "mjs")] {
        let blocks = blocks(guide, language);
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
    if guide.matches("```").count() % 2 == 1 {
        bail!("docs/guides/{name}.md: a fence is not closed");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_of_the_language_are_found_with_their_lines() {
        let guide = "# A\n```python\na = 1\n```\n```js\nlet b;\n```\n```python fragment\nc\n```\n\n```python\nd = 2\n```\n";
        let found: Vec<(usize, String)> =
            blocks(guide, "python").into_iter().map(|block| (block.line, block.text)).collect();
        assert_eq!(found, [(2, "a = 1\n".to_owned()), (12, "d = 2\n".to_owned())]);
    }
}
