//! Checks that a type name means one thing within a crate: no two structs, enums, unions, traits or aliases share one.
//! Types of tests and of generated code do not count.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use syn::Item;
use syn::visit::Visit;

use super::{is_for_tests, line};

/// Where each name is defined: `file:line`.
type Definitions = BTreeMap<String, Vec<String>>;

/// One line for each type name that a crate defines more than once.
pub(super) fn duplicates(source: &Path) -> Result<Vec<String>> {
    let mut definitions = Definitions::new();
    for entry in walkdir::WalkDir::new(source).sort_by_file_name() {
        let entry = entry?;
        let path = entry.path();
        let file = path.strip_prefix(source)?;
        if path.extension().is_none_or(|extension| extension != "rs") || is_exempt(file) {
            continue;
        }
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        add(&mut definitions, &file.display().to_string(), &text)
            .with_context(|| path.display().to_string())?;
    }
    Ok(shared(&definitions))
}

fn is_exempt(file: &Path) -> bool {
    file.with_extension("").iter().any(|part| {
        let part = part.to_string_lossy();
        part == "generated" || part == "tests" || part.ends_with("_tests")
    })
}

fn add(definitions: &mut Definitions, file: &str, text: &str) -> Result<()> {
    let mut names = TypeNames::default();
    for item in &syn::parse_file(text)?.items {
        names.visit_item(item);
    }
    for (name, line) in names.0 {
        definitions.entry(name).or_default().push(format!("{file}:{line}"));
    }
    Ok(())
}

fn shared(definitions: &Definitions) -> Vec<String> {
    let shared = definitions.iter().filter(|(_, places)| places.len() > 1);
    shared.map(|(name, places)| format!("{name}: {}", places.join(", "))).collect()
}

/// The types that a file defines, with their lines.
#[derive(Debug, Default)]
struct TypeNames(Vec<(String, usize)>);

impl Visit<'_> for TypeNames {
    fn visit_item(&mut self, item: &Item) {
        if is_for_tests(item) {
            return;
        }
        let name = match item {
            Item::Struct(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            _ => None,
        };
        if let Some(name) = name {
            self.0.push((name.to_string(), line(name.span())));
        }
        syn::visit::visit_item(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duplicates_in(files: &[(&str, &str)]) -> Vec<String> {
        let mut definitions = Definitions::new();
        for (file, text) in files.iter().filter(|(file, _)| !is_exempt(Path::new(file))) {
            add(&mut definitions, file, text).expect("Rust");
        }
        shared(&definitions)
    }

    #[test]
    fn duplicate_type_name_is_reported_with_both_files() {
        let files = [("a.rs", "struct Choice;"), ("b/c.rs", "\nfn read() { enum Choice {} }")];
        assert_eq!(duplicates_in(&files), ["Choice: a.rs:1, b/c.rs:2"]);
        let aliases = [("a.rs", "type Work = u8;"), ("b.rs", "pub trait Work {}")];
        assert_eq!(duplicates_in(&aliases), ["Work: a.rs:1, b.rs:1"]);
    }

    #[test]
    fn distinct_names_associated_types_tests_and_generated_code_pass() {
        let files = [
            ("a.rs", "struct ChatChoice; impl Iterator for ChatChoice { type Item = u8; }"),
            (
                "b.rs",
                "struct Item; #[cfg(test)] struct ChatChoice; #[cfg(test)] mod tests { struct ChatChoice; }",
            ),
            ("b/tests.rs", "struct ChatChoice;"),
            ("c_tests.rs", "struct ChatChoice;"),
            ("generated/types.rs", "struct ChatChoice;"),
        ];
        assert_eq!(duplicates_in(&files), Vec::<String>::new());
    }
}
