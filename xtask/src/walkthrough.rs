//! Runs a page of the documentation as its reader would: from top to bottom, in one shell.
//!
//! A page becomes one Bash script. Its `sh` blocks are included unchanged; a `python` or `js` block is a separate program; a
//! block whose fence names a file (`toml gatewright.toml`) is that file. `console` blocks contain commands (`$ …`) and their
//! output, which is compared; `toml config` is a configuration to check; `sql` runs on a Postgres server dedicated to the
//! page. A block with another word after the language (`python fragment`) is not run. Background processes end with the
//! page.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

use crate::artefacts::{self, program, target, venv};
use crate::database::Database;
use crate::fences::{blocks, is_file};
use crate::local_gateway::LocalGateway;
use crate::process::{command, root};
use crate::transcript::{ConsoleCommand, agrees, commands};

/// Gateway addresses in the pages; each page gets free ports instead, or the address of the running gateway for the
/// first.
const ADDRESSES: [&str; 2] = ["127.0.0.1:8080", "127.0.0.1:8081"];
/// Terminates a here-document in the script; no page contains such a line.
const END: &str = "end-of-a-block-of-the-page";
/// The beginning of a script: it stops at the first failure, reports the block, and ends what it started.
const HEAD: &str = "here=1\n\
    trap 'echo \"the block of line $here failed\" >&2' ERR\n\
    set -euo pipefail\n\
    trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n";

/// Where the programs of a page come from.
#[derive(Debug, Clone)]
pub(crate) struct PageEnvironment {
    /// Folders before those of PATH.
    pub programs: Vec<PathBuf>,
    /// The folder of Node packages that the page imports; by default ours.
    pub packages: Option<PathBuf>,
    pub variables: Vec<(&'static str, String)>,
}

impl PageEnvironment {
    /// Our own program and packages.
    pub(crate) fn ours() -> Result<Self> {
        let programs = vec![
            program().parent().context("the program has a folder")?.to_owned(),
            venv(&root()).join("bin"),
        ];
        Ok(Self { programs, packages: None, variables: Vec::new() })
    }
}

/// Which blocks of a page run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockFilter {
    All,
    /// Not those of Python and JavaScript, which form one script each in the guides.
    Shell,
}

/// What runs for a page.
#[derive(Debug, Default, PartialEq, Eq)]
struct Script {
    text: String,
    /// The expected output of each command in a `console` block, in order: line of the fence, command,
    /// output.
    commands: Vec<(usize, ConsoleCommand)>,
    /// Whether it needs a Postgres server.
    asks_database: bool,
}

/// The script of a page; `None` if there is nothing to run.
fn script(page: &str, which: BlockFilter) -> Result<Option<Script>> {
    let mut script = Script::default();
    for block in blocks(page)? {
        let words: Vec<&str> = block.info.split_whitespace().collect();
        let (line, text) = (block.line, &block.text);
        let programmed = match words.as_slice() {
            ["sh"] => text.clone(),
            ["console"] => script.played(line, text),
            ["python"] if which == BlockFilter::All => format!("python - <<'{END}'\n{text}{END}\n"),
            ["js"] if which == BlockFilter::All => {
                format!("node --input-type=module - <<'{END}'\n{text}{END}\n")
            }
            ["sql"] => {
                script.asks_database = true;
                format!("psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 <<'{END}'\n{text}{END}\n")
            }
            // Secrets and files that a configuration fragment refers to need not exist.
            ["toml", "config"] => {
                format!("cat > checked.toml <<'{END}'\n{text}{END}\ngatewright config check checked.toml\n")
            }
            [_, file] if is_file(file) => {
                let folder = Path::new(file).parent().filter(|folder| !folder.as_os_str().is_empty());
                let made =
                    folder.map_or_else(String::new, |folder| format!("mkdir -p {}\n", folder.display()));
                format!("{made}cat > {file} <<'{END}'\n{text}{END}\n")
            }
            _ => continue,
        };
        _ = write!(script.text, "here={line}\n{programmed}");
    }
    Ok(Some(script).filter(|script| !script.text.is_empty()))
}

impl Script {
    /// Runs the commands of a `console` block, and records their output. They may fail: that is part of what they show.
    fn played(&mut self, line: usize, block: &str) -> String {
        let mut text = String::new();
        for command in commands(block) {
            let place = printed(self.commands.len());
            _ = write!(text, "{{ {}\n}} >{place} 2>&1 </dev/null || true\n", command.line);
            self.commands.push((line, command));
        }
        text
    }

    /// Errors: a command's output differs from the page.
    fn compare(&self, folder: &Path) -> Result<()> {
        for (index, (line, command)) in self.commands.iter().enumerate() {
            let printed = std::fs::read_to_string(folder.join(printed(index)))?;
            if !agrees(&command.printed, &printed) {
                bail!("line {line}: `{}` prints something else:\n{printed}", command.line);
            }
        }
        Ok(())
    }
}

/// Where the output of a command is stored.
fn printed(index: usize) -> String {
    format!("printed-{index}.txt")
}

/// Runs all blocks of a page. gateway: a running one, for pages that start none.
///
/// Errors: a block failed; the error names the page, and standard error the line.
pub(crate) fn run_page(
    path: &Path,
    surroundings: &PageEnvironment,
    gateway: Option<&LocalGateway>,
) -> Result<()> {
    run_blocks(path, BlockFilter::All, surroundings, gateway)
}

/// Runs a page like [`run_page`], or some of its blocks.
pub(crate) fn run_blocks(
    path: &Path,
    which: BlockFilter,
    surroundings: &PageEnvironment,
    gateway: Option<&LocalGateway>,
) -> Result<()> {
    let shown = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let mut page = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    if let Some(host) = gateway.and_then(|gateway| gateway.address().strip_prefix("http://")) {
        page = page.replace(ADDRESSES[0], host);
    }
    // Both are bound at the same time, or they could be the same.
    let free = ADDRESSES.map(|_| TcpListener::bind("127.0.0.1:0"));
    for (address, listener) in ADDRESSES.iter().zip(free) {
        page = page.replace(address, &listener?.local_addr()?.to_string());
    }
    let Some(script) = script(&page, which).with_context(|| shown.clone())? else { return Ok(()) };
    eprintln!("    {shown}");
    let work = target().join("walkthrough").join(shown.replace('/', "-"));
    if work.exists() {
        std::fs::remove_dir_all(&work)?;
    }
    std::fs::create_dir_all(work.join("home"))?;
    match &surroundings.packages {
        Some(packages) => std::os::unix::fs::symlink(packages, work.join("node_modules"))?,
        None => artefacts::link_node_package(&work)?,
    }
    // Removed after the page has run.
    let database = script.asks_database.then(Database::start).transpose()?;
    let path_variable = std::env::var_os("PATH").unwrap_or_default();
    let folders = surroundings.programs.iter().cloned();
    let folders = folders.chain(database.iter().map(|database| database.programs().to_owned()));
    let folders = folders.chain(std::env::split_paths(&path_variable));
    let mut bash = command("bash");
    bash.current_dir(&work)
        .arg("-c")
        .arg(format!("{HEAD}{}", script.text))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    bash.env("PATH", std::env::join_paths(folders)?).env("HOME", work.join("home"));
    // Of the folders below, too: what a page starts and keeps is its own.
    let folders = ["XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME"];
    let settings = ["GATEWRIGHT_BASE_URL", "GATEWRIGHT_API_KEY", "GATEWRIGHT_SERVE_KEY"];
    for variable in folders.into_iter().chain(settings) {
        bash.env_remove(variable);
    }
    if let Some(gateway) = gateway {
        gateway.reach_from(&mut bash);
    }
    if let Some(database) = &database {
        bash.envs(database.variables());
    }
    bash.envs(surroundings.variables.iter().map(|(name, value)| (name, value)));
    let output = bash.output().context("cannot start bash")?;
    if !output.status.success() {
        bail!("{shown}: a block failed ({})\n{}", output.status, String::from_utf8_lossy(&output.stdout));
    }
    script.compare(&work).context(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_becomes_one_script_with_line_numbers() {
        let page = "# A\n```sh\nexport A=1\n```\n```toml conf/a.toml\nb = 2\n```\n```python\nprint(3)\n```\n";
        let script = script(page, BlockFilter::All)
            .expect("the fences are closed")
            .expect("there is something to run");
        let expected = format!(
            "here=2\nexport A=1\nhere=5\nmkdir -p conf\ncat > conf/a.toml <<'{END}'\nb = 2\n{END}\n\
             here=8\npython - <<'{END}'\nprint(3)\n{END}\n"
        );
        assert_eq!(script.text, expected);
        let shell = super::script(page, BlockFilter::Shell).expect("closed").expect("something to run");
        assert_eq!(Some(shell.text.as_str()), expected.split("here=8").next());
    }

    #[test]
    fn fragments_and_other_languages_are_not_run() {
        let page = "```sh fragment\nfalse\n```\n```json\n{}\n```\n```rust\nx\n```\n";
        assert_eq!(script(page, BlockFilter::All).expect("the fences are closed"), None);
    }

    #[test]
    fn unclosed_fence_is_reported() {
        let error = script("# A\n\n```sh\ntrue\n", BlockFilter::All).expect_err("it is not closed");
        assert_eq!(error.to_string(), "the fence of line 3 is not closed");
    }

    /// Without programs and packages.
    fn bare(folder: &Path) -> PageEnvironment {
        PageEnvironment { programs: Vec::new(), packages: Some(folder.to_owned()), variables: Vec::new() }
    }

    /// See `.config/nextest.toml`: it starts a server.
    mod postgres {
        use super::*;

        #[test]
        fn sql_blocks_run_on_a_server_and_report_errors() {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("a-page-with-sql.md");
            let made = "```sql\nCREATE USER one PASSWORD '…';\nCREATE DATABASE two OWNER one;\n```\n";
            let query =
                "```console\n$ psql -XAt -c \"SELECT 1 FROM pg_database WHERE datname = 'two'\"\n1\n```\n";
            std::fs::write(&path, format!("{made}{query}")).expect("it is written");
            run_page(&path, &bare(folder.path()), None).expect("both statements run");
            std::fs::write(&path, "```sql\nCREATE DATABASE;\n```\n").expect("it is written");
            let error = run_page(&path, &bare(folder.path()), None).expect_err("invalid SQL");
            assert!(format!("{error:#}").contains("a block failed"), "{error:#}");
        }
    }

    #[test]
    fn page_fails_on_a_failing_block_or_unexpected_output() {
        let folder = tempfile::tempdir().expect("a folder");
        let bare = bare(folder.path());
        for (page, complaint) in [
            ("```sh\nfalse\n```\n```sh\ntrue\n```\n", "a block failed"),
            ("```console\n$ echo one; false\none\n$ echo two\n2\n```\n", "`echo two` prints something else"),
        ] {
            let path = folder.path().join("a-page-that-fails.md");
            std::fs::write(&path, page).expect("it is written");
            let error = run_page(&path, &bare, None).expect_err("the block fails");
            assert!(format!("{error:#}").contains(complaint), "{error:#}");
        }
    }
}
