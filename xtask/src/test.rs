//! `cargo xtask test`: everything, in all three languages, in the order in which a failure is cheapest to find.

use std::time::Instant;

use anyhow::{Error, Result, bail};

use crate::artefacts::{self, Examples, npm_ci, program, python, venv};
use crate::building::build;
use crate::checkkit;
use crate::clients;
use crate::codegen;
use crate::console;
use crate::container;
use crate::local_gateway::LocalGateway;
use crate::process::{cargo, command, output, root, run, step, tests_at_once};
use crate::{
    book, changed, demo, deny, deploy, doc_examples, fuzz, generated_requests, guides, migration, other_api,
    package, pages, promise, readme, rooms, runtimes, soak, torture, workflows,
};

type Step = (&'static str, &'static str, fn() -> Result<()>);

const STEPS: &[Step] = &[
    ("codegen", "generated files match spec/", check_generated),
    ("format", "Rust is formatted", || run(cargo().args(["fmt", "--all", "--check"]))),
    ("rooms", "modules use only what lies below them", rooms::check),
    ("build", "the program and both packages build", || artefacts::build_all(Examples::All)),
    ("spec", "spec/ passes the public linters", lint_spec),
    ("clippy", "no lint fires", clippy),
    ("features", "the core builds without its client, and the program without the gateway", check_features),
    ("rust", "Rust tests", rust_tests),
    ("nodes", "several gateways share a store on a server", tests_of_nodes),
    ("torture", "gateways that are killed, stopped and starved lose nothing", torture::run_short),
    ("doc", "Rust documentation builds, its examples run, and every public type has one", rust_documentation),
    ("python", "Python tests, types and lints", python_tests),
    ("node", "Node tests, types and lints", node_tests),
    (
        "other-api",
        "generated clients of another specification call its operations",
        other_api::generate_and_call,
    ),
    ("runtimes", "the Node package works on other releases of Node, and on Bun", runtimes::test_node_package),
    ("peers", "other validators agree about the vectors of reports and requests", compare_peers),
    (
        "checkkit",
        "the kit, the agent, another server and another validator agree",
        checkkit::check_with_others,
    ),
    ("examples", "every example runs", run_examples),
    ("distributed", "a cluster judges a partitioned data set of reports", judge_on_a_cluster),
    ("videos", "what the gateway calls a video plays", play_videos),
    ("story", "three languages tell the same story", demo::compare_stories),
    (
        "readme",
        "the README quotes the examples, and blocks and pictures of pages are in order",
        readme::check_readme,
    ),
    ("guides", "the code of the guides runs", guides::run_guides),
    ("book", "the site builds with every page, and no link in it is dead", || book::build_book().map(drop)),
    ("pages", "pages of reports lie well in a browser", pages::test_pages),
    ("migration", "a script of the official SDK runs here with two lines changed", migration::compare),
    ("clients", "clients that others wrote work, whatever the upstream speaks", clients::serve_them),
    ("console", "the console works in a browser, for everybody", console::test),
    ("client-pages", "the pages about clients that others wrote run", clients::run_pages),
    ("requests", "generated requests get answers that the specification allows", generated_requests::send),
    ("workflows", "workflows and shell scripts pass their linters", workflows::check),
    ("deploy", "the unit, the container file, compose and the manifests pass their linters", deploy::lint),
    ("soak", "memory stays flat over many calls and events", soak::run_short),
    ("deny", "every dependency is allowed and used", deny::check),
    ("fuzz", "no input breaks a fuzz target", fuzz::run_short),
    ("package", "the installed wheel and tarball work", package::check_installed),
    ("promise", "a change of spec/ reaches three languages and the gateway", promise::keep),
];

/// Those that run only by their names: they take long, and programs that few machines have.
const BY_NAME_ALONE: &[Step] = &[
    (
        "container",
        "the image is small, serves without rights, keeps its data and ends in peace",
        container::test,
    ),
    ("powershell", "PowerShell completes commands, options and values", test_in_powershell),
];

/// Megabytes on the disk below which a failure is likely to be for want of them.
const SCARCE: u64 = 1024;
/// What a clean clone has after all steps.
const NEEDED: &str = "17 GB";

/// The names of all steps that run without being named, in their order.
pub(crate) fn names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.0).collect()
}

/// Runs the steps that the changes since a commit or branch can break.
pub(crate) fn run_changed(base: &str) -> Result<()> {
    let steps = changed::steps_since(base, &names())?;
    if steps.is_empty() {
        eprintln!("no step depends on them");
        return Ok(());
    }
    eprintln!("steps: {}", steps.join(", "));
    run_tests(&steps.into_iter().map(str::to_owned).collect::<Vec<_>>())
}

/// Runs the named steps, or all but those that have to be named, until the first failure.
pub(crate) fn run_tests(wanted: &[String]) -> Result<()> {
    let by_name = if wanted.is_empty() { &[] } else { BY_NAME_ALONE };
    let steps = || STEPS.iter().chain(by_name);
    if let Some(unknown) = wanted.iter().find(|name| steps().all(|step| step.0 != name.as_str())) {
        let further: Vec<&str> = BY_NAME_ALONE.iter().map(|step| step.0).collect();
        bail!(
            "there is no step {unknown:?}; the steps are {}, and by their names alone {}",
            names().join(", "),
            further.join(", ")
        );
    }
    let started = Instant::now();
    let mut passed = 0;
    for (name, title, body) in steps() {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            step(&format!("{name}: {title}"), body).map_err(with_room)?;
            passed += 1;
        }
    }
    eprintln!("all {passed} steps passed in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// Says that the disk is full, which few programs do when they fail for it. Where there is no `df`: nothing.
fn with_room(error: Error) -> Error {
    let table = output(command("df").args(["-Pk", "."])).unwrap_or_default();
    let free = table.lines().nth(1).and_then(|line| line.split_whitespace().nth(3)?.parse::<u64>().ok());
    match free.map(|free| free / 1024) {
        Some(free) if free < SCARCE => error
            .context(format!("the disk has {free} MB left, which may be why; all steps take about {NEEDED}")),
        _ => error,
    }
}

fn check_generated() -> Result<()> {
    codegen::run(&root(), true)
}

fn lint_spec() -> Result<()> {
    let tools = root().join("tests/tools");
    npm_ci(&tools)?;
    run(command(tools.join("node_modules/.bin/redocly")).current_dir(root().join("spec")).args([
        "lint",
        "--config",
        "redocly.yaml",
        "openapi.yaml",
    ]))?;
    let bin = venv(&root()).join("bin");
    run(command(bin.join("openapi-spec-validator")).arg("spec/openapi.yaml"))?;
    run(command(bin.join("check-jsonschema")).args([
        "--check-metaschema",
        "spec/report.schema.json",
        "spec/catalog.schema.json",
        "spec/errors.schema.json",
    ]))?;
    run(command(bin.join("check-jsonschema")).args([
        "--schemafile",
        "spec/errors.schema.json",
        "spec/errors.json",
    ]))?;
    run(command(bin.join("check-jsonschema")).args([
        "--schemafile",
        "spec/catalog.schema.json",
        "spec/catalog.json",
    ]))
}

/// The code that the gateway and the kit share with the clients builds without an HTTP library, and the program without the
/// gateway.
fn check_features() -> Result<()> {
    build(cargo().args(["check", "--package", "gatewright-cli", "--no-default-features"]))?;
    for features in [&["--no-default-features"][..], &["--no-default-features", "--features", "report"]] {
        build(cargo().args(["check", "--package", "gatewright"]).args(features))?;
    }
    Ok(())
}

fn clippy() -> Result<()> {
    // Not --all-targets, which also builds the engines as tests, against their Cargo.toml.
    let targets = ["--lib", "--bins", "--tests", "--examples"];
    build(
        cargo()
            .args(["clippy", "--workspace", "--all-features"])
            .args(targets)
            .args(["--", "-D", "warnings"]),
    )
}

fn rust_tests() -> Result<()> {
    run_nextest(&[])
}

/// Those that the default filter of `.config/nextest.toml` leaves out: they start servers.
fn tests_of_nodes() -> Result<()> {
    run_nextest(&["--ignore-default-filter", "-E", "test(/(^|::)(postgres|redis|nodes)::/)"])
}

fn test_in_powershell() -> Result<()> {
    run_nextest(&["--ignore-default-filter", "-E", "test(powershell_completes)"])
}

fn run_nextest(chosen: &[&str]) -> Result<()> {
    let nextest = ["nextest", "run", "--workspace", "--all-features"];
    build(cargo().args(nextest).arg("--no-run"))?;
    run(cargo().args(nextest).args(["--test-threads", &tests_at_once()?]).args(chosen))
}

fn rust_documentation() -> Result<()> {
    run(cargo().args(["test", "--doc", "--workspace", "--all-features"]))?;
    build(cargo().env("RUSTDOCFLAGS", "-D warnings").args([
        "doc",
        "--no-deps",
        "--workspace",
        "--all-features",
        "--lib",
    ]))?;
    doc_examples::check()
}

fn python_tests() -> Result<()> {
    let bin = venv(&root()).join("bin");
    let in_package = |name: &str| {
        let mut command = command(bin.join(name));
        command.current_dir(root().join("bindings-python")).env("GATEWRIGHT_BIN", program());
        command
    };
    let scripts = [
        "../examples/python",
        "../examples/distributed",
        "../tests/soak",
        "../tests/migration",
        "../tests/clients",
        "../tests/other-api",
        "../tests/requests",
        "../bench/python",
    ];
    run(in_package("ruff").args(["check", "."]).args(scripts))?;
    run(in_package("ruff").args(["format", "--check", "."]).args(scripts))?;
    run(in_package("mypy").args(["--strict", "python/gatewright", "../examples/python", "../tests/soak"]))?;
    run(in_package("pyright").args(["-p", "."]))?;
    run(in_package("pytest").args(["-q", "-n", &tests_at_once()?, "tests"]))
}

fn node_tests() -> Result<()> {
    let package = root().join("bindings-node");
    run(command(package.join("node_modules/.bin/biome")).current_dir(&package).args([
        "ci",
        "../tests/soak",
        "../tests/migration",
        "../tests/clients",
        "../tests/other-api",
        "../tests/tools",
        "../tests/pages",
        "../bench/node",
    ]))?;
    for script in ["lint", "typecheck", "test"] {
        run(artefacts::node_package("npm")
            .env("GATEWRIGHT_BIN", program())
            .args(["run", "--silent", script]))?;
    }
    Ok(())
}

fn compare_peers() -> Result<()> {
    npm_ci(&root().join("tests/peers"))?;
    run(python().args(["tests/peers/compare.py", "--program"]).arg(program()))?;
    run(python().arg("tests/peers/requests.py"))
}

fn play_videos() -> Result<()> {
    let gateway = LocalGateway::start()?;
    run(gateway.reach_from(python().arg("gateway/tests/playable.py").arg(gateway.address())))
}

/// The example that runs on Ray, on a cluster of this machine.
fn judge_on_a_cluster() -> Result<()> {
    let folder = root().join("examples/distributed");
    artefacts::pip_install(&folder.join("requirements.txt"))?;
    run(python().arg(folder.join("validate_reports.py")).env("RAY_USAGE_STATS_ENABLED", "0"))
}

fn run_examples() -> Result<()> {
    artefacts::build_engines(&root(), Examples::All)?;
    let gateway = LocalGateway::start()?;
    let work = artefacts::target().join("examples-run");
    std::fs::create_dir_all(&work)?;
    for (folder, extension) in [("rust", "rs"), ("python", "py"), ("node", "mjs"), ("node", "cjs")] {
        for path in crate::process::files_of(&root().join("examples").join(folder), extension)? {
            let name = path.file_stem().expect("a file has a name").to_owned();
            let mut example = match extension {
                "rs" => artefacts::example(&name),
                "py" => python(),
                _ => command("node"),
            };
            if extension != "rs" {
                example.arg(&path);
            }
            eprintln!("    examples/{folder}/{}.{extension}", name.to_string_lossy());
            crate::process::output(
                gateway.reach_from(example.current_dir(&work)).stderr(std::process::Stdio::inherit()),
            )?;
        }
    }
    Ok(())
}
