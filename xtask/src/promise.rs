//! Tests the product's promise on a copy of the tree: a new field of a request, a new field of a response and a new
//! operation, written only into `spec/`, are typed and callable in three languages and routed in the gateway.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::artefacts::{self, Examples, target, venv};
use crate::process::{command, output, root, run, step};

/// The folder of the copy.
const COPY: &str = "promise";

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
    step("generate from the edited spec", || crate::codegen::run(&copy, false))?;
    let kept = step("build the copy", || build(&copy)).and_then(|()| call_from_each(&copy));
    // The copy shares the target folder. Build the artefacts of the tree itself again, whatever the result.
    forget_copy(&target().join("debug/.fingerprint"))?;
    artefacts::build_engines(&root(), Examples::All)?;
    kept
}

// What was built of the copy is, to cargo, what would be built of the tree: it would look at the files of the copy to see
// whether a crate has changed.
fn forget_copy(fingerprints: &Path) -> Result<()> {
    let start = format!("{COPY}/").into_bytes();
    // A list of files, whose paths begin in the target folder.
    let is_of_copy = |path: &Path| {
        let is_list = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"dep-"));
        let list = if is_list { std::fs::read(path)? } else { Vec::new() };
        let mut parts = list.windows(start.len()).enumerate();
        std::io::Result::Ok(parts.any(|(at, part)| part == start && (at == 0 || list[at - 1] != b'/')))
    };
    for crates in std::fs::read_dir(fingerprints).context("no fingerprints of cargo")? {
        let folder = crates?.path();
        let paths: Vec<PathBuf> =
            std::fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
        for path in paths {
            if is_of_copy(&path)? {
                std::fs::remove_dir_all(&folder)?;
                break;
            }
        }
    }
    Ok(())
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

fn build(copy: &Path) -> Result<()> {
    // cargo finds programs of the package in this folder.
    let programs = copy.join("examples/rust/src/bin");
    std::fs::create_dir_all(&programs)?;
    std::fs::copy(root().join("tests/promise/promise.rs"), programs.join("promise.rs"))?;
    artefacts::build_engines(copy, Examples::One("promise"))?;
    let built = target().join("debug");
    artefacts::place_engine(&built.join("lib_engine.so"), &python_package(copy).join("gatewright"))?;
    artefacts::build_node_package(&copy.join("bindings-node"), "debug")
}

fn python_package(copy: &Path) -> PathBuf {
    copy.join("bindings-python/python")
}

fn call_from_each(copy: &Path) -> Result<()> {
    let gateway = crate::local_gateway::LocalGateway::start()?;
    let programs = root().join("tests/promise");
    let check = |language: &str, program: &mut Command| -> Result<()> {
        let printed = output(gateway.reach_from(program))?;
        if printed.trim() != EXPECTED {
            bail!("{language} printed {printed:?} instead of {EXPECTED:?}");
        }
        Ok(())
    };
    step("the change from Rust", || check("Rust", &mut artefacts::example("promise")))?;
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
