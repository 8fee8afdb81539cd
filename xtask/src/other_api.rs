//! Tests the generator on other specifications (`tests/other-api`): generates their clients in three languages, compiles
//! and type-checks them, and calls every operation over a socket.

mod form;
mod server;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use self::server::StubServer;
use crate::artefacts::{self, python, target, venv};
use crate::codegen;
use crate::process::{cargo, command, root, run};

/// The specifications: one in this generator's style, and one as other people write theirs.
const APIS: &[&str] = &["harbour", "library"];

/// The modules of a Rust client, for the program that includes them.
const RUST_ROOT: &str = "pub mod operations;\npub mod resources;\npub mod types;\n";

/// The macros that types call, for the same program.
const RUST_MACROS: &str = "pub(crate) mod open_enum;\npub(crate) mod setters;\n";

/// Generates, compiles and calls.
pub(crate) fn generate_and_call() -> Result<()> {
    let source = root().join("tests/other-api");
    let folder = target().join("other-api");
    std::fs::create_dir_all(&folder)?;
    for name in APIS {
        let file = |end: &str| source.join(format!("{name}.{end}"));
        codegen::generate_clients(&file("yaml"), &file("json"), &folder)?;
    }
    for (language, prepare) in [
        ("Rust", prepare_rust as fn(&Path, &Path) -> Result<Command>),
        ("Python", prepare_python),
        ("Node", prepare_node),
    ] {
        let mut program = prepare(&source, &folder).with_context(|| format!("the clients in {language}"))?;
        let server = StubServer::start(&source.join("exchanges.json"))?;
        program.env("GATEWRIGHT_BASE_URL", server.address()).env("GATEWRIGHT_API_KEY", "key");
        program.env("EXCHANGES", source.join("exchanges.json"));
        let called = run(&mut program);
        let unexpected = server.unexpected();
        if !unexpected.is_empty() {
            bail!("{language} sent what no exchange expects:\n{}", unexpected.join("\n"));
        }
        called?;
        let missing = server.not_served();
        if !missing.is_empty() {
            bail!("{language} has not called: {}", missing.join(", "));
        }
        eprintln!("    {language}: every operation called");
    }
    Ok(())
}

fn prepare_rust(_: &Path, folder: &Path) -> Result<Command> {
    let generated = folder.join("rust");
    for name in APIS {
        std::fs::write(generated.join(name).join("mod.rs"), RUST_ROOT)?;
        std::fs::write(generated.join(name).join("api/mod.rs"), RUST_MACROS)?;
    }
    let arguments = ["rustc", "-p", "gatewright-other-api", "--bin", "other_api", "--", "--cfg", "other_api"];
    run(cargo().env("OTHER_API", &generated).args(arguments))?;
    Ok(command(target().join("debug/other_api")))
}

fn prepare_python(source: &Path, folder: &Path) -> Result<Command> {
    let generated = folder.join("python");
    let package = root().join("bindings-python");
    let calls = source.join("python/calls.py");
    let paths = std::env::join_paths([package.join("python"), generated])?;
    let bin = venv(&root()).join("bin");
    run(command(bin.join("mypy"))
        .env("MYPYPATH", &paths)
        .args(["--strict", "--config-file", "bindings-python/pyproject.toml"])
        .arg(&calls))?;
    let mut program = python();
    program.arg(calls).env("PYTHONPATH", paths);
    Ok(program)
}

fn prepare_node(source: &Path, folder: &Path) -> Result<Command> {
    let folder = folder.join("node");
    let package = root().join("bindings-node");
    link(&package.join("dist"), &folder.join("gatewright"))?;
    for file in ["calls.ts", "tsconfig.json"] {
        std::fs::copy(source.join("node").join(file), folder.join(file))?;
    }
    artefacts::npm_ci(&package)?;
    let types = package.join("node_modules/@types");
    run(command(package.join("node_modules/.bin/tsc"))
        .arg("--project")
        .arg(folder.join("tsconfig.json"))
        .arg("--typeRoots")
        .arg(types))?;
    let mut program = command("node");
    program.arg(folder.join("calls.js"));
    Ok(program)
}

fn link(to: &Path, place: &PathBuf) -> Result<()> {
    if std::fs::read_link(place).is_ok_and(|known| known == to) {
        return Ok(());
    }
    let _ = std::fs::remove_file(place);
    std::os::unix::fs::symlink(to, place).with_context(|| format!("cannot link {}", place.display()))
}
