//! Tests the Node package on further runtimes: other releases of Node, Bun and Deno. They are packages of the npm registry,
//! pinned in `tests/runtimes`.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::artefacts::{npm_ci, program};
use crate::process::{command, files_of, output, root, run, step, tests_at_once};

/// Maximum time of a single test on Bun. Its default of 5 s is less than the time to compile an example.
const BUN_TEST_TIMEOUT_MS: &str = "60000";

/// Deno's tests. It checks no types of JavaScript, and takes packages from where npm put them.
const DENO_TEST: [&str; 6] =
    ["test", "--allow-all", "--no-check", "--no-lock", "--node-modules-dir=none", "--reporter=dot"];

/// Runs all tests of the Node package of this checkout on each of the runtimes.
pub(crate) fn test_node_package() -> Result<()> {
    let package = root().join("bindings-node");
    test_package(&package, &program(), &files_of(&package.join("test"), "mjs")?)
}

/// Runs tests of a Node package on each of the runtimes. `package`: the folder with the folder of the tests; `gateway`: the program that
/// they start.
pub(crate) fn test_package(package: &Path, gateway: &Path, tests: &[PathBuf]) -> Result<()> {
    npm_ci(&root().join("tests/runtimes"))?;
    let [node_22, node_24, bun, deno] = binaries()?;
    let deadline = "--import=./test/support/deadline.mjs";
    let node_test = [deadline, "--test", "--test-reporter=dot", "--test-concurrency", &tests_at_once()?];
    let on = |runtime: &Path, arguments: &[&str]| {
        let version = output(command(runtime).arg("--version"))?;
        let name = runtime.file_name().unwrap_or_default().to_string_lossy();
        step(&format!("{name} {}", version.trim()), || {
            let mut test = command(runtime);
            // Each by name: `node --test` of release 22 takes no folder.
            run(test.current_dir(package).env("GATEWRIGHT_BIN", gateway).args(arguments).args(tests))
        })
    };
    on(&node_22, &node_test)?;
    on(&node_24, &node_test)?;
    on(&bun, &["test", "--timeout", BUN_TEST_TIMEOUT_MS, "--only-failures"])?;
    on(&deno, &DENO_TEST)
}

/// The programs of the runtimes, where npm installs them on this kind of machine.
fn binaries() -> Result<[PathBuf; 4]> {
    let (node, bun, deno) = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => ("linux-x64", "linux-x64", "linux-x64-glibc"),
        ("linux", "aarch64") => ("linux-arm64", "linux-aarch64", "linux-arm64-glibc"),
        (system, processor) => bail!(
            "tests/runtimes/package.json names no runtimes for {system} on {processor}: add their packages there, \
             and their folders here"
        ),
    };
    let below = root().join("tests/runtimes/node_modules");
    Ok([
        below.join(format!("node-22-{node}/bin/node")),
        below.join(format!("node-24-{node}/bin/node")),
        below.join(format!("@oven/bun-{bun}/bin/bun")),
        below.join(format!("@deno/{deno}/deno")),
    ])
}
