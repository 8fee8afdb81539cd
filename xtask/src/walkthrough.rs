//! Runs a page of the documentation as its reader would: from top to bottom, in one shell.
//!
//! A page becomes one script of Bash. Its `sh` blocks stand in it as they are; a `python` or `js` block is a program of its
//! own; a block whose fence names a file (`toml gatewright.toml`) is that file. A block whose fence has another word after
//! the language (`python fragment`) is not run. What is started in the background ends with the page.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::artefacts::{self, program, target, venv};
use crate::local_gateway::LocalGateway;
use crate::process::{command, root};

/// Addresses of gateways in the pages; each page gets free ports instead, or the first the gateway that runs already.
const ADDRESSES: [&str; 2] = ["127.0.0.1:8080", "127.0.0.1:8081"];
/// Ends a text of the script; no page has such a line.
const END: &str = "end-of-a-block-of-the-page";

/// Where the programs of a page come from.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    /// Folders before those of PATH.
    pub programs: Vec<PathBuf>,
    /// The folder of Node packages that the page imports; ours if there is none.
    pub packages: Option<PathBuf>,
    pub variables: Vec<(&'static str, String)>,
}

impl Surroundings {
    /// Our own program and packages.
    pub(crate) fn ours() -> Result<Self> {
        let programs = vec![
            program().parent().context("the program has a folder")?.to_owned(),
            venv(&root()).join("bin"),
        ];
        Ok(Self { programs, packages: None, variables: Vec::new() })
    }
}

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// Line of the fence, from 1.
    line: usize,
    /// `sh`, `python toml`, …: the words after the fence.
    info: String,
    text: String,
}

fn blocks(page: &str) -> Result<Vec<Block>> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    for (index, line) in page.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(info) if !open => {
                found.push(Block { line: index + 1, info: info.trim().to_owned(), text: String::new() });
                open = true;
            }
            Some(_) => open = false,
            None if open => {
                let block = found.last_mut().context("it was pushed where it began")?;
                block.text.extend([line, "\n"]);
            }
            None => {}
        }
    }
    if open {
        bail!("the fence of line {} is not closed", found.last().map_or(0, |block| block.line));
    }
    Ok(found)
}

/// The script of a page; `None` if it has nothing to run.
fn script(page: &str) -> Result<Option<String>> {
    let mut script = String::from("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n");
    let mut runs = false;
    for Block { line, info, text } in blocks(page)? {
        let words: Vec<&str> = info.split_whitespace().collect();
        let programmed = match words.as_slice() {
            ["sh"] => text,
            ["python"] => format!("python - <<'{END}'\n{text}{END}\n"),
            ["js"] => format!("node --input-type=module - <<'{END}'\n{text}{END}\n"),
            [_, file] if file.contains('.') => {
                let folder = Path::new(file).parent().filter(|folder| !folder.as_os_str().is_empty());
                let made =
                    folder.map_or_else(String::new, |folder| format!("mkdir -p {}\n", folder.display()));
                format!("{made}cat > {file} <<'{END}'\n{text}{END}\n")
            }
            _ => continue,
        };
        runs = true;
        _ = write!(script, "here={line}\n{programmed}");
    }
    // The line of the block that failed, for a person.
    script.insert_str(0, "here=1\ntrap 'echo \"the block of line $here failed\" >&2' ERR\n");
    Ok(runs.then_some(script))
}

/// Runs a page. gateway: one that runs already, for pages that start none.
///
/// Errors: a block failed; the error names the page, and standard error the line.
pub(crate) fn run_page(
    path: &Path,
    surroundings: &Surroundings,
    gateway: Option<&LocalGateway>,
) -> Result<()> {
    let shown = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let page = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let Some(mut script) = script(&page).with_context(|| shown.clone())? else { return Ok(()) };
    if let Some(host) = gateway.and_then(|gateway| gateway.address().strip_prefix("http://")) {
        script = script.replace(ADDRESSES[0], host);
    }
    // Both are free at once, or they could be the same.
    let free = ADDRESSES.map(|_| TcpListener::bind("127.0.0.1:0"));
    for (address, listener) in ADDRESSES.iter().zip(free) {
        script = script.replace(address, &listener?.local_addr()?.to_string());
    }
    eprintln!("    {shown}");
    let work = target().join("walkthrough").join(path.file_stem().context("a page has a name")?);
    if work.exists() {
        std::fs::remove_dir_all(&work)?;
    }
    std::fs::create_dir_all(work.join("home"))?;
    match &surroundings.packages {
        Some(packages) => std::os::unix::fs::symlink(packages, work.join("node_modules"))?,
        None => artefacts::link_node_package(&work)?,
    }
    let path_variable = std::env::var_os("PATH").unwrap_or_default();
    let folders = surroundings.programs.iter().cloned().chain(std::env::split_paths(&path_variable));
    let mut bash: Command = command("bash");
    bash.current_dir(&work)
        .arg("-c")
        .arg(&script)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    bash.env("PATH", std::env::join_paths(folders)?).env("HOME", work.join("home"));
    for variable in ["GATEWRIGHT_BASE_URL", "GATEWRIGHT_API_KEY", "GATEWRIGHT_SERVE_KEY"] {
        bash.env_remove(variable);
    }
    if let Some(gateway) = gateway {
        gateway.reach_from(&mut bash);
    }
    bash.envs(surroundings.variables.iter().map(|(name, value)| (name, value)));
    let output = bash.output().context("cannot start bash")?;
    if !output.status.success() {
        bail!("{shown}: a block failed ({})\n{}", output.status, String::from_utf8_lossy(&output.stdout));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_one_script_with_the_lines_of_its_blocks() {
        let page = "# A\n```sh\nexport A=1\n```\n```toml conf/a.toml\nb = 2\n```\n```python\nprint(3)\n```\n";
        let script = script(page).expect("the fences are closed").expect("there is something to run");
        let body = script.split_once("EXIT\n").expect("the traps come first").1;
        let expected = format!(
            "here=2\nexport A=1\nhere=5\nmkdir -p conf\ncat > conf/a.toml <<'{END}'\nb = 2\n{END}\n\
             here=8\npython - <<'{END}'\nprint(3)\n{END}\n"
        );
        assert_eq!(body, expected);
    }

    #[test]
    fn blocks_with_another_word_and_of_other_languages_are_not_run() {
        let page = "```sh fragment\nfalse\n```\n```json\n{}\n```\n```rust\nx\n```\n";
        assert_eq!(script(page).expect("the fences are closed"), None);
    }

    #[test]
    fn a_fence_that_is_not_closed_is_named() {
        let error = script("# A\n\n```sh\ntrue\n").expect_err("it is not closed");
        assert_eq!(error.to_string(), "the fence of line 3 is not closed");
    }

    #[test]
    fn a_failing_block_fails_its_page() {
        let folder = tempfile::tempdir().expect("a folder");
        let page = folder.path().join("a-page-that-fails.md");
        std::fs::write(&page, "```sh\nfalse\n```\n```sh\ntrue\n```\n").expect("it is written");
        let bare = Surroundings {
            programs: Vec::new(),
            packages: Some(folder.path().to_owned()),
            variables: Vec::new(),
        };
        let error = run_page(&page, &bare, None).expect_err("the block fails");
        assert!(error.to_string().contains("a block failed"), "{error}");
    }
}
