//! Tests the product's promise on a copy of the tree: a new field of a request, a new field of a response and a new
//! operation, written only into `spec/`, are typed and callable in three languages and routed in the gateway.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::artefacts::{self, Examples, target, venv};
use crate::local_gateway::LocalGateway;
use crate::process::{command, output, root, run, step};

/// The folder of the copy, and the one that it is built into.
const COPY: &str = "promise";
const BUILT: &str = "promise-build";

/// Additions to the copy's `spec/openapi.yaml`: the line that each precedes, and its text.
const EDITS: [(&str, &str); 4] = [
    ("webhooks:\n", include_str!("../../tests/promise/operation.yaml")),
    ("    ChatCompletionRequest:\n", include_str!("../../tests/promise/schemas.yaml")),
    (
        "        max_completion_tokens:",
        "        mood: { type: [\"string\", \"null\"], description: Mood of the answer., x-source: ours }\n",
    ),
    (
        "        service_tier: { type: [\"string\", \"null\"], description: Processing tier used.",
        "        answered_mood: { type: [\"string\", \"null\"], description: Mood found., x-source: ours }\n",
    ),
];

/// Edits a copy of the spec, generates, builds, and runs a program of each language against the copy's gateway.
pub(crate) fn keep() -> Result<()> {
    let copy = target().join(COPY);
    copy_tree(&copy)?;
    edit_spec(&copy.join("spec/openapi.yaml"))?;
    step("generate from the edited spec", || crate::codegen::generate(&copy, false))?;
    let built = target().join(BUILT);
    seed(&built.join("debug"))?;
    step("build the copy", || build(&copy, &built))?;
    call_from_each(&copy, &built.join("debug"))
}

/// Seeds the copy's target folder with the builds of third-party crates, which are most of the work. Nothing of ours is
/// considered fresh there: the files of the copy are newer.
fn seed(into: &Path) -> Result<()> {
    let from = target().join("debug");
    for folder in [".fingerprint", "build", "deps"] {
        let (from, into) = (from.join(folder), into.join(folder));
        if into.exists() || !from.exists() {
            continue;
        }
        for entry in walkdir::WalkDir::new(&from) {
            let entry = entry?;
            let to = into.join(entry.path().strip_prefix(&from)?);
            if entry.file_type().is_dir() {
                std::fs::create_dir_all(&to)?;
            } else if is_needed(folder, entry.path()) {
                place(entry.path(), &to).with_context(|| format!("cannot place {}", to.display()))?;
            }
        }
    }
    Ok(())
}

/// Programs in `deps` are tests.
fn is_needed(folder: &str, file: &Path) -> bool {
    folder != "deps" || file.extension().is_some()
}

/// Links files that compilers replace as a whole, and copies those that cargo writes in place, with their modification
/// times, which cargo relies on.
fn place(file: &Path, to: &Path) -> Result<()> {
    const REPLACED: [&str; 5] = ["rlib", "rmeta", "so", "a", "o"];
    if file.extension().is_some_and(|extension| REPLACED.iter().any(|replaced| extension == *replaced)) {
        return Ok(std::fs::hard_link(file, to)?);
    }
    std::fs::copy(file, to)?;
    let modified = std::fs::metadata(file)?.modified()?;
    Ok(std::fs::File::options().append(true).open(to)?.set_modified(modified)?)
}

// Writes only files that differ, so that a second run builds only what has changed.
fn copy_tree(copy: &Path) -> Result<()> {
    let listed = output(command("git").args(["ls-files", "--cached", "--others", "--exclude-standard"]))?;
    for name in listed.lines() {
        let from = root().join(name);
        if !from.is_file() {
            continue;
        }
        let to = copy.join(name);
        let contents = std::fs::read(&from)?;
        if std::fs::read(&to).is_ok_and(|there| there == contents) {
            continue;
        }
        std::fs::create_dir_all(to.parent().context("a listed file lies in a folder")?)?;
        std::fs::write(&to, contents).with_context(|| format!("copy {name}"))?;
    }
    Ok(())
}

fn edit_spec(path: &Path) -> Result<()> {
    let mut text = std::fs::read_to_string(path)?;
    for (anchor, addition) in EDITS {
        let Some(place) = text.find(anchor) else {
            bail!("openapi.yaml has no line that starts with {anchor:?}; fix EDITS in xtask/src/promise.rs");
        };
        text.insert_str(place, addition);
    }
    Ok(std::fs::write(path, text)?)
}

fn build(copy: &Path, built: &Path) -> Result<()> {
    // cargo finds programs of the package in this folder.
    let programs = copy.join("examples/rust/src/bin");
    std::fs::create_dir_all(&programs)?;
    std::fs::copy(root().join("tests/promise/promise.rs"), programs.join("promise.rs"))?;
    artefacts::build_engines_of(copy, built, Examples::One("promise"))?;
    let engine = built.join("debug/lib_engine.so");
    artefacts::place_engine(&engine, &python_package(copy).join("gatewright"))?;
    artefacts::build_node_package(&copy.join("bindings-node"), built, "debug")
}

fn python_package(copy: &Path) -> PathBuf {
    copy.join("bindings-python/python")
}

fn call_from_each(copy: &Path, built: &Path) -> Result<()> {
    let gateway = LocalGateway::start_program(&built.join("gatewright"))?;
    let programs = root().join("tests/promise");
    let check = |language: &str, program: &mut Command| -> Result<()> {
        let printed = output(gateway.reach_from(program))?;
        if printed.trim() != EXPECTED {
            bail!("{language} printed {printed:?} instead of {EXPECTED:?}");
        }
        Ok(())
    };
    step("the change from Rust", || check("Rust", &mut command(built.join("promise"))))?;
    step("the change from Python, typed", || {
        let bin = venv(&root()).join("bin");
        let path = python_package(copy);
        run(command(bin.join("mypy"))
            .env("MYPYPATH", &path)
            .arg("--strict")
            .arg(programs.join("promise.py")))?;
        check("Python", command(bin.join("python")).env("PYTHONPATH", &path).arg(programs.join("promise.py")))
    })?;
    step("the change from Node, typed", || {
        let folder = copy.join("bindings-node");
        let program = folder.join("promise.mts");
        std::fs::copy(programs.join("promise.mts"), &program)?;
        run(command(folder.join("node_modules/.bin/tsc")).current_dir(&folder).args([
            "--strict",
            "--module",
            "nodenext",
            "--target",
            "es2022",
            "--lib",
            "es2022,esnext.disposable",
            "--types",
            "node",
            "--skipLibCheck",
            "promise.mts",
        ]))?;
        check("Node", command("node").arg(folder.join("promise.mjs")))
    })
}

/// Each program calls the new operation, which the gateway routes without a handler, and uses both new fields.
const EXPECTED: &str = "greetings.create: 501 not_implemented\nanswered_mood: none";
