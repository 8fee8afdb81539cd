//! Checks that files included by code at compile time are in the archive of the code. Otherwise only a build would
//! show that, which takes minutes; `cargo xtask package --source` does it.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{Attribute, File, Item, LitStr, Macro};
use walkdir::WalkDir;

/// Fails if code below `src` of a package includes a file that doesn't exist, or that is not below `archive`.
pub(super) fn check(package: &Path, archive: &Path) -> Result<()> {
    let (mut all, mut of_tests) = (Vec::new(), Vec::new());
    for entry in WalkDir::new(package.join("src")).sort_by_file_name() {
        let path = entry?.into_path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        let file = syn::parse_file(&text).with_context(|| path.display().to_string())?;
        let mut found = IncludedFiles::default();
        found.visit_file(&file);
        let below = folder_of_modules(&path);
        of_tests.extend(found.modules_of_tests.iter().map(|name| below.join(name)));
        all.push((path, found.included));
    }
    let mut missing = Vec::new();
    for (path, included) in all {
        let module = path.with_extension("");
        if of_tests.iter().any(|of_tests| module.starts_with(of_tests)) {
            continue;
        }
        for name in included {
            let place = settled(&path.with_file_name(&name));
            if !place.starts_with(archive) || !place.exists() {
                missing.push(format!(
                    "{} includes {name}",
                    path.strip_prefix(archive).unwrap_or(&path).display()
                ));
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    bail!("files are not in the archive, so it cannot be built:\n{}", missing.join("\n"));
}

/// The folder of the modules that a file declares.
fn folder_of_modules(file: &Path) -> PathBuf {
    let is_root = ["lib.rs", "main.rs", "mod.rs"].iter().any(|name| file.ends_with(name));
    if is_root { file.with_file_name("") } else { file.with_extension("") }
}

/// What a file includes outside of tests, and its test-only modules in other files.
#[derive(Default)]
struct IncludedFiles {
    included: Vec<String>,
    modules_of_tests: Vec<String>,
}

impl<'ast> Visit<'ast> for IncludedFiles {
    fn visit_file(&mut self, file: &'ast File) {
        if !is_of_tests(&file.attrs) {
            syn::visit::visit_file(self, file);
        }
    }

    fn visit_item(&mut self, item: &'ast Item) {
        let of_tests = match item {
            Item::Mod(item) => {
                let of_tests = is_of_tests(&item.attrs);
                if of_tests && item.content.is_none() {
                    self.modules_of_tests.push(item.ident.to_string());
                }
                of_tests
            }
            Item::Fn(item) => is_of_tests(&item.attrs),
            Item::Const(item) => is_of_tests(&item.attrs),
            _ => false,
        };
        if !of_tests {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let name = call.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        if name.starts_with("include")
            && let Ok(path) = call.parse_body::<LitStr>()
        {
            self.included.push(path.value());
        }
        self.search(call.tokens.clone());
    }
}

impl IncludedFiles {
    /// Calls inside the arguments of other macros.
    fn search(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (place, token) in tokens.iter().enumerate() {
            let TokenTree::Group(group) = token else { continue };
            let name = place.checked_sub(2).and_then(|name| tokens.get(name)).map(ToString::to_string);
            let is_include = name.is_some_and(|name| name.starts_with("include_"));
            match syn::parse2::<LitStr>(group.stream()) {
                Ok(path) if is_include => self.included.push(path.value()),
                _ => self.search(group.stream()),
            }
        }
    }
}

/// `cfg(test)`, `cfg(doctest)`, `cfg(fuzzing)` or a combination: users never compile it.
fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = match &attribute.meta {
            syn::Meta::List(list) if list.path.is_ident("cfg") => list.tokens.to_string(),
            _ => return attribute.path().is_ident("test"),
        };
        let words: Vec<&str> = text.split(|letter: char| !letter.is_alphanumeric()).collect();
        !words.contains(&"not") && ["test", "doctest", "fuzzing"].iter().any(|word| words.contains(word))
    })
}

/// The path without `.` and `..`, even if nothing is there.
fn settled(path: &Path) -> PathBuf {
    let mut settled = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(settled.pop()),
            Component::CurDir => {}
            part => settled.push(part),
        }
    }
    settled
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn package(code: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("package/src")).expect("a folder");
        fs::write(folder.path().join("package/src/lib.rs"), code).expect("a file");
        fs::write(folder.path().join("package/src/there.json"), "{}").expect("a file");
        fs::write(folder.path().join("outside.json"), "{}").expect("a file");
        folder
    }

    fn problem(code: &str) -> Option<String> {
        let folder = package(code);
        let package = folder.path().join("package");
        check(&package, &package).err().map(|error| error.to_string())
    }

    #[test]
    fn included_files_must_be_in_the_archive() {
        assert_eq!(problem("const A: &str = include_str!(\"there.json\");"), None);
        for code in [
            "const A: &str = include_str!(\"absent.json\");",
            "const A: &str = include_str!(\"../../outside.json\");",
            "fn a() { println!(\"{}\", include_str!(\"../../outside.json\")); }",
        ] {
            assert!(problem(code).is_some_and(|problem| problem.contains("includes")), "{code}");
        }
    }

    #[test]
    fn files_included_only_by_tests_may_be_elsewhere() {
        for cfg in ["#[cfg(test)]", "#[cfg(all(doctest, guides))]", "#[cfg(fuzzing)]"] {
            let code =
                format!("{cfg}\nmod tests {{ const A: &str = include_str!(\"../../outside.json\"); }}");
            assert_eq!(problem(&code), None, "{cfg}");
        }
        let code = "#[cfg(not(test))]\nconst A: &str = include_str!(\"../../outside.json\");";
        assert!(problem(code).is_some());
    }

    #[test]
    fn test_only_modules_may_include_files_elsewhere() {
        let outside = "const A: &str = include_str!(\"../../outside.json\");";
        for (declared, is_fine) in [("#[cfg(test)] mod only_tests;", true), ("mod only_tests;", false)] {
            let folder = package(declared);
            let package = folder.path().join("package");
            fs::write(package.join("src/only_tests.rs"), outside).expect("a file");
            assert_eq!(check(&package, &package).is_ok(), is_fine, "{declared}");
        }
    }
}
