//! Checks that the code of the READMEs is that of the examples, which the step `examples` runs, and that each block of every page
//! says whether it runs, and each picture is shown by one.

use anyhow::{Context, Result, bail};

use crate::process::root;
use crate::{fences, pictures};

const BLOCKS: [(&str, &str, &str); 4] = [
    ("README.md", "rust", "examples/rust/readme.rs"),
    ("README.md", "python", "examples/python/readme.py"),
    ("README.md", "js", "examples/node/readme.mjs"),
    ("core/README.md", "rust", "examples/rust/readme.rs"),
];

/// Compares each language's block with the example that it quotes: after its opening comment, the example is the block.
pub(crate) fn check_readme() -> Result<()> {
    fences::check()?;
    pictures::check()?;
    for (readme, language, path) in BLOCKS {
        let text = std::fs::read_to_string(root().join(readme))?;
        let block = text
            .split_once(&format!("```{language}\n"))
            .and_then(|(_, rest)| rest.split_once("```"))
            .with_context(|| format!("{readme} has no {language} block"))?
            .0;
        let example = std::fs::read_to_string(root().join(path))?;
        if !example.ends_with(&format!("\n\n{block}")) {
            bail!("the {language} block of {readme} differs from {path}; make them equal");
        }
    }
    Ok(())
}
