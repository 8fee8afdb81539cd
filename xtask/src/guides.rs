//! Runs the code of the guides, so that code copied from them works.
//!
//! The Python blocks of a guide form one script, which runs from top to bottom against a local gateway; so do its JavaScript
//! blocks. Each block in the client references is a separate program, as editors show it next to a name. Commands and files
//! of a guide are walked through. Rust blocks are documentation tests of the crate `gatewright`, which run against the same
//! gateway. `migrating.md` quotes scripts that its own step runs, see migration.rs. The tutorial, the handbook, the cookbook
//! and the pages of providers are walked through, see walkthrough.rs; so are the pages about other clients, in their own
//! step.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::artefacts::{self, python, target};
use crate::fences::{Block, blocks};
use crate::local_gateway::LocalGateway;
use crate::process::{cargo, command, files_of, output, root, run};
use crate::walkthrough::{self, BlockFilter, PageEnvironment, run_page};

/// Quotes scripts that another step runs.
const QUOTES: &str = "migrating";

/// The pages whose code runs here.
#[cfg(test)]
pub(crate) fn pages() -> Result<Vec<PathBuf>> {
    let mut pages = guides()?;
    pages.extend(references());
    pages.extend(client_references());
    pages.extend(walked(&ON_THEIR_OWN, &WALKED)?);
    pages.extend(walked(&AT_A_GATEWAY, &["cookbook"])?);
    Ok(pages)
}

fn guides() -> Result<Vec<PathBuf>> {
    let mut guides = files_of(&root().join("docs/guides"), "md")?;
    guides.retain(|path| path.file_stem().is_none_or(|name| name != QUOTES));
    Ok(guides)
}

fn references() -> [PathBuf; 2] {
    ["docs/reference/python.md", "docs/reference/node.md"].map(|page| root().join(page))
}

/// Pages whose blocks come from the sources of the clients.
fn client_references() -> [PathBuf; 2] {
    ["docs/reference/python-client.md", "docs/reference/node-client.md"].map(|page| root().join(page))
}

/// Pages that need no running gateway, besides those in folders.
const ON_THEIR_OWN: [&str; 4] =
    ["docs/tutorial.md", "docs/coming-from.md", "docs/docker.md", "cli/README.md"];
/// Folders of pages that need none.
const WALKED: [&str; 2] = ["handbook", "providers"];
/// Pages that need a gateway, besides the cookbook's.
const AT_A_GATEWAY: [&str; 2] = ["bindings-python/README.md", "bindings-node/README.md"];

/// Single pages, and those in folders of `docs/`.
fn walked(single: &[&str], folders: &[&str]) -> Result<Vec<PathBuf>> {
    let mut pages: Vec<PathBuf> = single.iter().map(|page| root().join(page)).collect();
    for folder in folders {
        pages.extend(files_of(&root().join("docs").join(folder), "md")?);
    }
    Ok(pages)
}

/// Runs the code of every guide in docs/guides.
pub(crate) fn run_guides() -> Result<()> {
    let gateway = LocalGateway::start()?;
    let ours = PageEnvironment::ours()?;
    let work = target().join("guides");
    std::fs::create_dir_all(&work)?;
    artefacts::link_node_package(&work)?;
    write_reports(&work)?;
    for path in guides()? {
        run_scripts(&gateway, &work, &path)?;
        walkthrough::run_blocks(&path, BlockFilter::Shell, &ours, Some(&gateway))?;
    }
    for path in references() {
        run_scripts(&gateway, &work, &path)?;
    }
    for path in client_references() {
        run_programs(&gateway, &work, &path)?;
    }
    for page in walked(&ON_THEIR_OWN, &WALKED)? {
        run_page(&page, &ours, None)?;
    }
    for page in walked(&AT_A_GATEWAY, &["cookbook"])? {
        run_page(&page, &ours, Some(&gateway))?;
    }
    Ok(())
}

/// Runs the Rust blocks of the guides. A plain `cargo test --doc` has no gateway and omits these tests.
pub(crate) fn run_rust() -> Result<()> {
    let gateway = LocalGateway::start()?;
    run(gateway.reach_from(cargo().env("RUSTDOCFLAGS", "--cfg guides").args([
        "test",
        "--doc",
        "--workspace",
        "--all-features",
        "guides",
    ])))
}

/// Input for programs of the guides: a folder of reports, and a file with one report per line. One of them is
/// invalid.
fn write_reports(work: &Path) -> Result<()> {
    std::fs::create_dir_all(work.join("runs"))?;
    let mut lines = String::new();
    for name in ["good", "broken"] {
        let text = std::fs::read_to_string(root().join(format!("examples/reports/{name}.json")))?;
        std::fs::write(work.join(format!("runs/{name}.json")), &text)?;
        // JSON has line breaks only between tokens.
        lines.extend(text.lines());
        lines.push('\n');
    }
    Ok(std::fs::write(work.join("all.ndjson"), lines)?)
}

/// The languages of the blocks that run, with their file extensions.
const LANGUAGES: [(&str, &str); 2] = [("python", "py"), ("js", "mjs")];

/// Runs the Python blocks of a page as one script, and its JavaScript blocks as another.
fn run_scripts(gateway: &LocalGateway, work: &Path, page: &Path) -> Result<()> {
    let guide = std::fs::read_to_string(page)?;
    let shown = page.strip_prefix(root())?;
    for (language, extension) in LANGUAGES {
        let blocks: Vec<Block> = blocks(&guide)?.into_iter().filter(|block| block.info == language).collect();
        if blocks.is_empty() {
            continue;
        }
        eprintln!("    {}: {} {language} blocks", shown.display(), blocks.len());
        run_script(gateway, work, shown, extension, &blocks)
            .with_context(|| format!("{}, its {language} blocks from top to bottom", shown.display()))?;
    }
    Ok(())
}

/// Runs each block of a page as a program.
fn run_programs(gateway: &LocalGateway, work: &Path, page: &Path) -> Result<()> {
    let guide = std::fs::read_to_string(page)?;
    let shown = page.strip_prefix(root())?;
    let blocks = blocks(&guide)?;
    for (language, extension) in LANGUAGES {
        let blocks: Vec<&Block> = blocks.iter().filter(|block| block.info == language).collect();
        if blocks.is_empty() {
            continue;
        }
        eprintln!("    {}: {} {language} programs", shown.display(), blocks.len());
        for block in blocks {
            run_script(gateway, work, shown, extension, std::slice::from_ref(block))
                .with_context(|| format!("{}:{}", shown.display(), block.line))?;
        }
    }
    Ok(())
}

/// Runs blocks of a page one after the other in one program.
fn run_script(
    gateway: &LocalGateway,
    work: &Path,
    shown: &Path,
    extension: &str,
    blocks: &[Block],
) -> Result<()> {
    // Blank lines replace the text in between, so that a traceback names the page's lines.
    let mut script = String::new();
    for block in blocks {
        let above = script.lines().count();
        script += &"\n".repeat(block.line.checked_sub(above).context("blocks are in order")?);
        script += &block.text;
    }
    let name = shown.with_extension("").display().to_string().replace('/', "-");
    let path = work.join(name).with_extension(extension);
    std::fs::write(&path, script)?;
    let mut program = if extension == "py" { python() } else { command("node") };
    output(gateway.reach_from(program.current_dir(work).arg(&path))).map(drop)
}
