//! The fenced blocks of a Markdown page, and the meaning of the words after a fence: whether the block runs, is a file, or
//! is only shown.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::{command, output, root};

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// Line of the fence, from 1.
    pub line: usize,
    /// `sh`, `python fragment`, …: the words after the fence.
    pub info: String,
    pub text: String,
}

/// Words after the language that mark a block that is not run.
const NOT_RUN: [&str; 2] = ["fragment", "no-run"];
/// Prefixes of our commands, which a block that is only shown must not contain.
const COMMANDS: [&str; 3] = ["gatewright ", "cargo xtask ", "$ "];

/// The blocks of a page, without the indentation that they have in a list. Errors: a fence is not closed.
pub(crate) fn blocks(page: &str) -> Result<Vec<Block>> {
    let mut found: Vec<Block> = Vec::new();
    let mut open: Option<&str> = None;
    for (index, line) in page.lines().enumerate() {
        let (indentation, content) = line.split_at(line.len() - line.trim_start_matches(' ').len());
        match (content.strip_prefix("```"), open) {
            (Some(info), None) => {
                found.push(Block { line: index + 1, info: info.trim().to_owned(), text: String::new() });
                open = Some(indentation);
            }
            (Some(_), Some(_)) => open = None,
            (None, Some(indentation)) => {
                let block = found.last_mut().context("it was pushed where it began")?;
                block.text.extend([line.strip_prefix(indentation).unwrap_or(content), "\n"]);
            }
            (None, None) => {}
        }
    }
    if open.is_some() {
        bail!("the fence of line {} is not closed", found.last().map_or(0, |block| block.line));
    }
    Ok(found)
}

/// Checks the blocks of every page in the repository: each must either run or be marked as not run.
pub(crate) fn check() -> Result<()> {
    let mut wrong = Vec::new();
    for page in pages()? {
        let text = std::fs::read_to_string(root().join(&page))?;
        let shown = page.display();
        match blocks(&text) {
            Err(error) => wrong.push(format!("{shown}: {error}")),
            Ok(blocks) => wrong.extend(blocks.iter().filter_map(|block| {
                let why = judge(block).err()?;
                Some(format!("{shown}:{}: {why}", block.line))
            })),
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}

/// The pages that git tracks or would add.
pub(crate) fn pages() -> Result<Vec<PathBuf>> {
    let listed = output(command("git").current_dir(root()).args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "*.md",
    ]))?;
    Ok(listed.lines().map(PathBuf::from).filter(|page| root().join(page).is_file()).collect())
}

/// Errors: it is unclear whether the block runs, or it doesn't match its fence.
fn judge(block: &Block) -> Result<()> {
    let words: Vec<&str> = block.info.split_whitespace().collect();
    match words.as_slice() {
        [] => bail!("the fence names no language: sh, console, text, …"),
        // Blocks of `ts` are signatures, which the generator writes. The step `workflows` lints `yaml steps`.
        ["sh" | "console" | "python" | "js" | "rust" | "ts" | "sql"]
        | ["toml", "config"]
        | ["yaml", "steps"] => {}
        ["toml"] => {
            bail!("a file is `toml NAME`, a configuration `toml config`, anything else `toml fragment`")
        }
        ["yaml"] => {
            bail!(
                "a file is `yaml NAME`, steps of a workflow are `yaml steps`, anything else is `yaml fragment`"
            )
        }
        ["json"] => {
            serde_json::from_str::<serde_json::Value>(&block.text).context("no JSON: say `json fragment`")?;
        }
        ["text"] => {
            let is_command = |line: &&str| COMMANDS.iter().any(|command| line.starts_with(command));
            if let Some(line) = block.text.lines().find(is_command) {
                bail!("{line:?} is a command: say `sh`, `console` or `sh fragment`");
            }
        }
        [_, word] if NOT_RUN.contains(word) => {}
        [_, file] if is_file(file) => {}
        _ => bail!("`{}` says nothing that is known of a block", block.info),
    }
    Ok(())
}

/// Whether the second word after a fence names the file that the block is.
pub(crate) fn is_file(word: &str) -> bool {
    Path::new(word).extension().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_must_declare_whether_it_runs() {
        let judged = |info: &str, text: &str| {
            judge(&Block { line: 1, info: info.to_owned(), text: text.to_owned() }).is_ok()
        };
        for (info, text) in [
            ("sh", "true"),
            ("console", "$ true"),
            ("sh fragment", "gatewright serve"),
            ("toml conf/a.toml", "a = 1"),
            ("toml config", ""),
            ("yaml steps", "- run: true"),
            ("sql", "SELECT 1;"),
            ("json", "{}"),
            ("text", "what a command printed"),
        ] {
            assert!(judged(info, text), "{info}");
        }
        for (info, text) in [
            ("", "gatewright serve"),
            ("toml", "a = 1"),
            ("yaml", "a: 1"),
            ("json", "{…}"),
            ("text", "gatewright serve"),
            ("pyhton", "1"),
        ] {
            assert!(!judged(info, text), "{info}");
        }
    }

    #[test]
    fn block_in_a_list_is_unindented() {
        let page = "1. One\n\n   ```sh\n   if true; then\n     true\n   fi\n   ```\n";
        let text = "if true; then\n  true\nfi\n".to_owned();
        assert_eq!(blocks(page).expect("it is closed"), [Block { line: 3, info: "sh".to_owned(), text }]);
    }

    #[test]
    fn executable_blocks_are_on_executed_pages() {
        // Their blocks are those of the examples, which have their own step.
        let mut run = ["README.md", "core/README.md"].map(|page| root().join(page)).to_vec();
        run.extend(crate::guides::pages().expect("pages"));
        run.extend(crate::clients::pages().expect("pages"));
        // It quotes scripts, which have their own step; the blocks of this one are documentation tests.
        run.extend(["docs/guides/migrating.md", "docs/reference/rust.md"].map(|page| root().join(page)));
        for page in pages().expect("the pages of git") {
            let text = std::fs::read_to_string(root().join(&page)).expect("text");
            for block in blocks(&text).expect("its fences are closed") {
                let runs = ["sh", "console", "python", "js", "rust", "sql", "toml config"];
                let is_run = run.contains(&root().join(&page));
                assert!(is_run || !runs.contains(&&*block.info), "{}:{}", page.display(), block.line);
            }
        }
    }

    #[test]
    fn every_repository_block_declares_whether_it_runs() {
        check().expect("every block declares it");
    }
}
