//! Which steps of `cargo xtask test` a change can break: a table of paths. A path that is not in the table can break
//! anything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::process::{cargo, command, output, root};

/// Steps that use the program, the packages or the tools that the step `build` builds or installs.
const AFTER_BUILD: &[&str] = &[
    "spec",
    "python",
    "node",
    "other-api",
    "runtimes",
    "peers",
    "checkkit",
    "examples",
    "distributed",
    "videos",
    "story",
    "guides",
    "rust-guides",
    "book",
    "pages",
    "migration",
    "clients",
    "console",
    "client-pages",
    "requests",
    "deploy",
    "soak",
    "package",
    "install-script",
    "promise",
];

/// Tests of a crate that nothing else contains.
const RUST_TESTS: &[&str] = &["format", "clippy", "rust", "nodes", "deny"];

/// What a language's package is part of.
const PYTHON: &[&str] = &[
    "codegen",
    "format",
    "clippy",
    "python",
    "peers",
    "checkkit",
    "examples",
    "distributed",
    "story",
    "guides",
    "rust-guides",
    "migration",
    "clients",
    "console",
    "client-pages",
    "soak",
    "deny",
    "package",
    "promise",
];
const NODE: &[&str] = &[
    "codegen",
    "format",
    "clippy",
    "node",
    "runtimes",
    "checkkit",
    "examples",
    "story",
    "guides",
    "rust-guides",
    "migration",
    "clients",
    "console",
    "client-pages",
    "soak",
    "deny",
    "package",
    "promise",
];

/// The program: the steps that run it, use its output, or test it. Not those that only read other files (linters of the
/// specification and of workflows, the text of pages), nor those that run other code (generated clients of another
/// specification).
const PROGRAM: &[&str] = &[
    "codegen",
    "format",
    "layering",
    "clippy",
    "features",
    "rust",
    "nodes",
    "torture",
    "doc",
    "python",
    "node",
    "runtimes",
    "peers",
    "checkkit",
    "examples",
    "distributed",
    "videos",
    "story",
    "guides",
    "rust-guides",
    "pages",
    "migration",
    "clients",
    "console",
    "client-pages",
    "requests",
    "deploy",
    "soak",
    "deny",
    "package",
    "install-script",
    "promise",
];

/// The gateway, which is part of the program: the steps that run it or provide its input. Not the program without it
/// (`features`), nor those that only validate reports (`peers`, `distributed`).
const GATEWAY: &[&str] = &[
    "codegen",
    "format",
    "layering",
    "clippy",
    "rust",
    "nodes",
    "torture",
    "doc",
    "python",
    "node",
    "runtimes",
    "checkkit",
    "examples",
    "videos",
    "story",
    "guides",
    "rust-guides",
    "pages",
    "migration",
    "clients",
    "console",
    "client-pages",
    "requests",
    "deploy",
    "soak",
    "deny",
    "package",
    "promise",
];

/// The code that validates, compares and displays reports, which is part of every package. Not the steps without reports:
/// those that call a gateway, break it or lint what is around it.
const REPORT: &[&str] = &[
    "codegen",
    "format",
    "layering",
    "clippy",
    "features",
    "rust",
    "doc",
    "python",
    "node",
    "runtimes",
    "peers",
    "checkkit",
    "examples",
    "distributed",
    "story",
    "guides",
    "rust-guides",
    "pages",
    "console",
    "deny",
    "package",
    "promise",
];

/// Steps by path prefix; the longest prefix wins. Omits what all steps depend on: most of the crates, the
/// specification, these commands.
const TABLE: &[(&str, &[&str])] = &[
    (".ci/", &["rust", "workflows"]),
    (".ci/archive", &["workflows", "install-script"]),
    (".ci/install-script", &["workflows", "install-script"]),
    (".github/", &["rust", "workflows"]),
    (".gitignore", &[]),
    ("ARCHITECTURE.md", &["rust", "book"]),
    ("CHANGELOG.md", &["rust", "book"]),
    ("CONTRIBUTING.md", &["rust", "book"]),
    ("LICENSE", &["package"]),
    ("README.md", &["rust", "readme", "book", "package"]),
    ("SECURITY.md", &["rust", "book"]),
    ("bench/", &["format", "clippy", "rust", "python", "node", "deny"]),
    ("bindings-node/", NODE),
    ("bindings-node/README.md", &["rust", "readme", "guides", "rust-guides", "package"]),
    ("bindings-node/test/", &["node", "runtimes", "package"]),
    ("bindings-python/", PYTHON),
    ("bindings-python/README.md", &["rust", "readme", "guides", "rust-guides", "package"]),
    ("bindings-python/tests/", &["python", "package"]),
    ("checkkit/tests/", RUST_TESTS),
    ("cli/src/", PROGRAM),
    ("cli/tests/", RUST_TESTS),
    ("codegen/ARCHITECTURE.md", &["rust", "book"]),
    ("config/providers/", GATEWAY),
    ("config/src/", GATEWAY),
    ("connect/tests/", RUST_TESTS),
    // The program contains its build output, in `console/src/built`, and the step compares both.
    ("console/app/", &["rust", "console"]),
    (
        "console/src/built/",
        &["format", "clippy", "rust", "nodes", "deny", "guides", "rust-guides", "console", "package"],
    ),
    ("console/test/", &["rust", "console"]),
    ("core/ARCHITECTURE.md", &["rust", "book"]),
    ("core/tests/", RUST_TESTS),
    ("deploy/", &["rust", "nodes", "deploy", "book"]),
    ("deploy/install.sh", &["workflows", "install-script"]),
    ("docs/", &["codegen", "rust", "doc", "readme", "guides", "rust-guides", "book", "client-pages"]),
    ("docs/benchmarks.md", &["rust", "readme", "book"]),
    ("docs/decisions/", &["rust", "readme", "book"]),
    ("docs/guides/", &["codegen", "rust", "doc", "readme", "guides", "rust-guides", "migration", "book"]),
    ("docs/pictures/", &["readme", "book", "pages", "console"]),
    ("docs/tutorial.md", &["codegen", "rust", "doc", "readme", "guides", "rust-guides", "book", "package"]),
    ("docs/reference/", &["codegen", "rust", "doc", "readme", "guides", "rust-guides", "book"]),
    ("examples/distributed/", &["python", "distributed"]),
    ("examples/node/", &["node", "examples", "story", "readme"]),
    ("examples/python/", &["python", "examples", "story", "readme"]),
    (
        "examples/rust/",
        &["format", "clippy", "examples", "console", "story", "readme", "soak", "promise", "deny"],
    ),
    ("fuzz/", &["format"]),
    ("gateway/ARCHITECTURE.md", &["rust", "book"]),
    ("gateway/src/", GATEWAY),
    ("gateway/tests/", &["format", "clippy", "rust", "nodes", "videos", "deny"]),
    ("protocol/src/", GATEWAY),
    ("report/src/", REPORT),
    ("report/tests/", RUST_TESTS),
    ("server/", &["format", "clippy", "rust", "nodes", "deny", "package"]),
    ("simulator/src/", GATEWAY),
    ("store/src/", GATEWAY),
    ("system/src/", GATEWAY),
    ("tests/agent/", &["checkkit", "clients", "client-pages"]),
    ("tests/clients/", &["python", "node", "guides", "rust-guides", "clients", "client-pages"]),
    ("tests/hostile/", &["format", "clippy", "rust"]),
    ("tests/json-schema-suite/", &["rust"]),
    ("tests/migration/", &["python", "node", "guides", "rust-guides", "migration"]),
    ("tests/oracle/", &["format", "clippy", "rust", "codegen", "deny"]),
    ("tests/other-api/", &["format", "clippy", "python", "node", "other-api", "deny"]),
    ("tests/pages/", &["rust", "node", "pages"]),
    ("tests/peers/", &["peers"]),
    ("tests/promise/", &["promise"]),
    ("tests/requests/", &["python", "requests"]),
    ("tests/runtimes/", &["runtimes"]),
    ("tests/servers/", &["checkkit", "clients"]),
    ("tests/soak/", &["python", "node", "soak"]),
    (
        "tests/stores/",
        &["format", "clippy", "rust", "nodes", "torture", "guides", "rust-guides", "client-pages", "deny"],
    ),
    ("tests/tools/", &["spec", "python", "node", "videos", "deploy", "workflows", "package"]),
    ("tests/torture/", &["format", "clippy", "rust", "nodes", "torture", "deny"]),
    ("tests/vectors/", &["rust", "python", "node", "runtimes", "peers", "checkkit", "console", "package"]),
];

/// The steps, in order, that the changes since `base` can break: those committed since the branch left it, uncommitted
/// ones, and new files.
pub(crate) fn steps_since(base: &str, all: &[&'static str]) -> Result<Vec<&'static str>> {
    let paths = paths_since(base)?;
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    Ok(steps_of(&paths, all))
}

/// The packages of the workspace with a file that has changed since `base`, sorted.
pub(crate) fn packages_since(base: &str) -> Result<Vec<String>> {
    let metadata = output(cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().context("cargo lists packages")?;
    let folders = packages.iter().filter_map(|package| {
        let folder = Path::new(package["manifest_path"].as_str()?).parent()?;
        Some((folder.strip_prefix(root()).ok()?.to_owned(), package["name"].as_str()?.to_owned()))
    });
    Ok(packages_of(&paths_since(base)?, &folders.collect::<Vec<_>>()))
}

/// The packages that contain the paths, each by the innermost folder.
fn packages_of(paths: &[String], folders: &[(PathBuf, String)]) -> Vec<String> {
    let of = |path: &String| {
        let holding = folders.iter().filter(|(folder, _)| Path::new(path).starts_with(folder));
        holding.max_by_key(|(folder, _)| folder.components().count()).map(|(_, name)| name.clone())
    };
    paths.iter().filter_map(of).collect::<BTreeSet<_>>().into_iter().collect()
}

fn paths_since(base: &str) -> Result<Vec<String>> {
    let fork = output(command("git").args(["merge-base", base, "HEAD"]))
        .with_context(|| format!("git knows no common ancestor with {base:?}; name a commit or a branch"))?;
    let changed = output(command("git").args(["diff", "--name-only", "--no-renames", "-z", fork.trim()]))?;
    let new = output(command("git").args(["ls-files", "--others", "--exclude-standard", "-z"]))?;
    let paths = changed.split('\0').chain(new.split('\0')).filter(|path| !path.is_empty());
    let paths: Vec<String> = paths.map(str::to_owned).collect();
    eprintln!("{} files have changed since {base}", paths.len());
    Ok(paths)
}

fn steps_of(paths: &[&str], all: &[&'static str]) -> Vec<&'static str> {
    let mut broken: Vec<&str> = Vec::new();
    for path in paths {
        let known =
            TABLE.iter().filter(|(begin, _)| path.starts_with(begin)).max_by_key(|(begin, _)| begin.len());
        let Some((_, steps)) = known else {
            return all.to_vec();
        };
        broken.extend(*steps);
        // They check the blocks of every page.
        if Path::new(path).extension().is_some_and(|extension| extension == "md") {
            broken.extend(["readme", "workflows"]);
        }
    }
    if broken.iter().any(|step| AFTER_BUILD.contains(step)) {
        broken.push("build");
    }
    all.iter().copied().filter(|step| broken.contains(step)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[&str] =
        &["codegen", "format", "build", "clippy", "rust", "python", "readme", "package", "workflows"];

    #[test]
    fn longest_matching_prefix_selects_steps_in_order() {
        assert_eq!(steps_of(&["LICENSE"], ALL), ["build", "package"]);
        assert_eq!(steps_of(&["bindings-python/tests/test_client.py"], ALL), ["build", "python", "package"]);
        assert_eq!(
            steps_of(&["LICENSE", "bindings-python/src/lib.rs"], ALL),
            ["codegen", "format", "build", "clippy", "python", "package"]
        );
    }

    #[test]
    fn changes_outside_the_crates_affect_only_steps_that_use_them() {
        let all = crate::test::names();
        for (path, seen, unseen) in [
            ("console/app/main.tsx", "console", "python"),
            ("console/src/built/mod.rs", "package", "torture"),
            ("console/test/axe.test.mjs", "console", "node"),
            ("tests/pages/pages.test.mjs", "pages", "console"),
            ("tests/torture/src/world.rs", "torture", "guides"),
            ("tests/stores/src/lib.rs", "torture", "python"),
            ("server/Cargo.toml", "package", "guides"),
            ("deploy/install.sh", "install-script", "nodes"),
            ("cli/src/serve.rs", "guides", "other-api"),
        ] {
            let steps = steps_of(&[path], &all);
            assert!(steps.contains(&seen) && !steps.contains(&unseen), "{path}: {steps:?}");
        }
    }

    #[test]
    fn cli_change_affects_every_step_that_runs_the_program() {
        let all = crate::test::names();
        let steps = steps_of(&["cli/src/lib.rs"], &all);
        let spared: Vec<_> = AFTER_BUILD.iter().filter(|step| !steps.contains(step)).collect();
        assert_eq!(spared, [&"spec", &"other-api", &"book"]);
    }

    /// What a step needs shows whether a report or a gateway is involved.
    #[test]
    fn gateway_or_report_change_skips_steps_that_use_neither() {
        let all = crate::test::names();
        let spared = |path: &str| -> Vec<&str> {
            let steps = steps_of(&[path], &all);
            all.iter().copied().filter(|step| !steps.contains(step)).collect()
        };
        assert_eq!(
            spared("gateway/src/relay.rs"),
            [
                "tools",
                "spec",
                "workflows",
                "readme",
                "features",
                "other-api",
                "book",
                "peers",
                "distributed",
                "install-script",
            ]
        );
        assert_eq!(
            spared("report/src/page.rs"),
            [
                "tools",
                "spec",
                "workflows",
                "deploy",
                "readme",
                "nodes",
                "other-api",
                "book",
                "torture",
                "clients",
                "client-pages",
                "videos",
                "install-script",
                "migration",
                "requests",
                "soak",
            ]
        );
        for path in ["gateway/Cargo.toml", "report/Cargo.toml"] {
            assert_eq!(spared(path), [""; 0], "{path}");
        }
        // A page about other clients that checked a gateway would involve a report.
        for page in crate::clients::pages().expect("the pages") {
            let text = std::fs::read_to_string(&page).expect("it is read");
            for block in crate::fences::blocks(&text).expect("its fences are closed") {
                let is_involved =
                    ["gatewright check", "gatewright report"].iter().any(|call| block.text.contains(call));
                assert!(!is_involved, "{}:{}", page.display(), block.line);
            }
        }
    }

    #[test]
    fn path_belongs_to_the_innermost_package() {
        let folders = [("gateway", "gateway"), ("tests/stores", "stores")]
            .map(|(folder, name)| (PathBuf::from(folder), name.to_owned()));
        let paths = ["gateway/src/relay.rs", "tests/stores/src/lib.rs", "tests/vectors/a.json", "README.md"];
        assert_eq!(packages_of(&paths.map(str::to_owned), &folders), ["gateway", "stores"]);
    }

    #[test]
    fn unknown_path_affects_every_step() {
        for path in [
            "core/src/lib.rs",
            "spec/openapi.yaml",
            "Cargo.lock",
            "xtask/src/changed.rs",
            "a-new-folder/file",
        ] {
            assert_eq!(steps_of(&["README.md", path], ALL), ALL, "{path}");
        }
    }

    #[test]
    fn no_or_irrelevant_change_selects_no_step() {
        assert!(steps_of(&[], ALL).is_empty());
        assert!(steps_of(&[".gitignore"], ALL).is_empty());
    }

    #[test]
    fn site_page_affects_the_book_step() {
        let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).expect("the pages");
        let pages = summary.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        for (page, _) in pages {
            let path = page.strip_prefix("../").map_or_else(|| format!("docs/{page}"), str::to_owned);
            assert!(steps_of(&[&path], &crate::test::names()).contains(&"book"), "{path}");
        }
    }

    #[test]
    fn executable_page_affects_the_step_that_runs_it() {
        for (step, pages) in [("guides", crate::guides::pages()), ("client-pages", crate::clients::pages())] {
            let pages = pages.expect("the pages");
            assert!(pages.len() > 5, "{step} runs {pages:?}");
            for page in pages {
                let path =
                    page.strip_prefix(root()).expect("it is in the repository").to_str().expect("text");
                assert!(steps_of(&[path], &crate::test::names()).contains(&step), "{path}");
            }
        }
    }

    #[test]
    fn page_affects_the_steps_that_check_its_blocks() {
        for page in crate::fences::pages().expect("the pages") {
            let path = page.to_str().expect("text");
            let steps = steps_of(&[path], &crate::test::names());
            assert!(steps.contains(&"readme") && steps.contains(&"workflows"), "{path}: {steps:?}");
        }
    }

    #[test]
    fn change_table_names_existing_paths_and_steps() {
        let files = output(command("git").args(["ls-files", "--cached", "--others", "--exclude-standard"]))
            .expect("git");
        for (begin, _) in TABLE {
            assert!(files.lines().any(|path| path.starts_with(begin)), "nothing begins with {begin}");
        }
        let named = TABLE.iter().flat_map(|(_, steps)| *steps).chain(AFTER_BUILD);
        let known = crate::test::names();
        for step in named {
            assert!(known.contains(step), "there is no step {step}");
        }
    }
}
