//! Checks that the READMEs' code equals that of the examples, which the step `examples` runs, that the packages' READMEs
//! name every operation, that each block on every page states whether it runs, that each picture is shown by one, and that
//! the badges are true.

use anyhow::{Context, Result, bail};

use crate::process::root;
use crate::{codegen, fences, pictures};

const BLOCKS: [(&str, &str, &str); 4] = [
    ("README.md", "rust", "examples/rust/readme.rs"),
    ("README.md", "python", "examples/python/readme.py"),
    ("README.md", "js", "examples/node/readme.mjs"),
    ("core/README.md", "rust", "examples/rust/readme.rs"),
];

/// Compares each language's block with the example that it quotes: without its opening comment, the example equals the
/// block.
pub(crate) fn check_readme() -> Result<()> {
    fences::check()?;
    pictures::check()?;
    check_operations()?;
    check_badges()?;
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

/// Errors: a badge states another version or license than the packages do.
fn check_badges() -> Result<()> {
    let (version, license) = (env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_LICENSE"));
    for (badge, value) in [("badge-version.svg", version), ("badge-license.svg", license)] {
        let badge = format!("docs/pictures/{badge}");
        let text = std::fs::read_to_string(root().join(&badge)).with_context(|| badge.clone())?;
        if !text.contains(value) {
            bail!("{badge} does not say {value}: change its texts");
        }
    }
    Ok(())
}

/// Errors: the table of calls in a package's README lacks an operation of the specification.
fn check_operations() -> Result<()> {
    let callables = codegen::callables()?;
    let python: Vec<_> = callables.iter().map(|callable| &callable.python).collect();
    let node: Vec<_> = callables.iter().map(|callable| &callable.node).collect();
    for (readme, operations) in [("bindings-python/README.md", python), ("bindings-node/README.md", node)] {
        let text = std::fs::read_to_string(root().join(readme))?;
        let lacking = unnamed(&text, &operations);
        if !lacking.is_empty() {
            bail!("the table of calls of {readme} lacks {}", lacking.join(", "));
        }
    }
    Ok(())
}

/// The operations, each a place and a method, that no row of a table names.
fn unnamed(page: &str, operations: &[&(String, String)]) -> Vec<String> {
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter_map(|line| line.strip_prefix('|'))
        .map(|row| row.split('|').map(str::trim).collect())
        .collect();
    let is_named = |place: &str, method: &str| {
        let (place, method) = (format!("`{place}`"), format!("`{method}`"));
        rows.iter().any(|row| {
            row.first() == Some(&&*place)
                && row.get(1).is_some_and(|cell| cell.split(", ").any(|named| named == method))
        })
    };
    let lacking = operations.iter().filter(|(place, method)| !is_named(place, method));
    lacking.map(|(place, method)| format!("{place}.{method}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_missing_from_the_table_is_reported() {
        let page = "| place | methods |\n| --- | --- |\n| `client.pens`  | `create`, `list` |\nalso `client.pens.delete`\n";
        let operation = |method: &str| ("client.pens".to_owned(), method.to_owned());
        let operations = ["create", "list", "lis", "delete"].map(operation);
        assert_eq!(unnamed(page, &operations.each_ref()), ["client.pens.lis", "client.pens.delete"]);
    }

    #[test]
    fn badges_state_the_version_and_the_license() {
        check_badges().expect("they are true");
    }

    #[test]
    fn package_readmes_list_every_operation() {
        check_operations().expect("every operation is listed");
    }
}
