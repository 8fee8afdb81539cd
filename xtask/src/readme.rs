//! Checks that the code of the README is that of the examples, which the step `examples` runs.

use anyhow::{Context, Result, bail};

use crate::process::root;

const BLOCKS: [(&str, &str); 3] = [
    ("rust", "examples/rust/readme.rs"),
    ("python", "examples/python/readme.py"),
    ("js", "examples/node/readme.mjs"),
];

/// Compares each language's block of README.md with the example that it quotes: after its opening comment, the example
/// is the block.
pub(crate) fn check_readme() -> Result<()> {
    let text = std::fs::read_to_string(root().join("README.md"))?;
    for (language, path) in BLOCKS {
        let block = text
            .split_once(&format!("```{language}\n"))
            .and_then(|(_, rest)| rest.split_once("```"))
            .with_context(|| format!("README.md has no {language} block"))?
            .0;
        let example = std::fs::read_to_string(root().join(path))?;
        if !example.ends_with(&format!("\n\n{block}")) {
            bail!("the {language} block of README.md differs from {path}; make them equal");
        }
    }
    Ok(())
}
