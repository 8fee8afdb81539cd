//! The table of options in `docs/guides/production.md` is complete: it names what the three clients take, and no more.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};

use crate::process::root;

/// How the table's head begins.
const HEAD: &str = "| Rust | Python | Node |";

/// Compares each language's column with that language's source.
pub(super) fn check() -> Result<()> {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).with_context(|| path.to_owned());
    let guide = read("docs/guides/production.md")?;
    let rust = read("core/src/client/builder.rs")?;
    let python = read("bindings-python/python/gatewright/_client.py")?;
    let node = read("bindings-node/src-ts/options.ts")?;
    let sources = [
        (
            "Rust",
            names(&rust, "impl ClientBuilder {", "\n}\n", |line| {
                line.strip_prefix("    pub fn ").filter(|_| line.contains("(mut self") || line.ends_with('('))
            })?,
        ),
        (
            "Python",
            names(&python, "class _Configured:\n", ") -> None:", |line| {
                line.strip_prefix("        ").filter(|line| line.contains(": ") && !line.starts_with("self"))
            })?,
        ),
        (
            "Node",
            names(&node, "export interface ClientOptions {\n", "\n}\n", |line| {
                line.strip_prefix("  ").filter(|line| line.contains("?: "))
            })?,
        ),
    ];
    for (column, (language, taken)) in sources.iter().enumerate() {
        let told = column_of(&guide, column)?;
        if told != *taken {
            bail!(
                "docs/guides/production.md, {language}: the table lacks {:?} and has {:?}, which the client does not take",
                taken.difference(&told).collect::<Vec<_>>(),
                told.difference(taken).collect::<Vec<_>>()
            );
        }
    }
    Ok(())
}

/// Names that begin the lines between two texts which `declaration` strips to their name.
fn names<'a>(
    source: &'a str,
    from: &str,
    to: &str,
    declaration: impl Fn(&'a str) -> Option<&'a str>,
) -> Result<BTreeSet<String>> {
    let (_, rest) = source.split_once(from).with_context(|| format!("the source has no {from:?}"))?;
    let (part, _) = rest.split_once(to).with_context(|| format!("the source has no {to:?}"))?;
    let identifier = |text: &str| -> String {
        text.chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect()
    };
    Ok(part.lines().filter_map(declaration).map(identifier).collect())
}

/// What stands in backticks in a column of the table, up to a colon, which begins an explanation.
fn column_of(guide: &str, column: usize) -> Result<BTreeSet<String>> {
    let (_, rest) = guide.split_once(HEAD).context("production.md has no table of options")?;
    let rows = rest.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cell = |row: &str| row.split('|').nth(column + 1).unwrap_or_default().to_owned();
    let told = rows.map(cell).flat_map(|cell| {
        let named = cell.split(':').next().unwrap_or_default().to_owned();
        named.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    });
    Ok(told.collect())
}
