//! `cargo xtask test`: everything, in all three languages, in parallel as far as possible.

mod schedule;

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
    advisories, book, changed, demo, deny, deploy, doc_examples, generated_requests, guides, layering,
    migration, nextest, other_api, package, pages, promise, readme, runtimes, setup, soak, torture,
    workflows,
};

/// A part of the tests that passes or fails on its own.
struct Step {
    name: &'static str,
    title: &'static str,
    needs: Needs,
    run: fn() -> Result<()>,
}

/// What a step needs, which determines what it can run in parallel with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// The sources, and what it installs itself.
    Sources,
    /// The target folder, which cargo locks while it builds.
    Compiler,
    /// The results of the step `build`.
    Build,
    /// The same, and every core: it runs many tests in parallel itself.
    Cores,
}

const fn step_of(name: &'static str, title: &'static str, needs: Needs, run: fn() -> Result<()>) -> Step {
    Step { name, title, needs, run }
}

const STEPS: &[Step] = &[
    step_of("build", "the program, both packages and the tests build", Needs::Compiler, build_what_is_tested),
    step_of("codegen", "generated files match spec/", Needs::Build, check_generated),
    step_of("format", "Rust is formatted", Needs::Sources, || run(cargo().args(["fmt", "--all", "--check"]))),
    step_of(
        "layering",
        "modules use only what lies below them; type names are unique within a crate",
        Needs::Sources,
        layering::check,
    ),
    step_of(
        "tools",
        "packages of the registries that steps use are installed",
        Needs::Sources,
        setup::install_packages,
    ),
    step_of("spec", "spec/ passes the public linters", Needs::Build, lint_spec),
    step_of("workflows", "workflows and shell scripts pass their linters", Needs::Build, workflows::check),
    step_of(
        "deploy",
        "the unit, the container file, compose, the manifests and the chart pass their linters",
        Needs::Build,
        deploy::lint,
    ),
    step_of(
        "readme",
        "the README quotes the examples, and blocks and pictures of pages are in order",
        Needs::Build,
        readme::check_readme,
    ),
    // Those that compile longest come first: they fill the time in which others wait.
    step_of("clippy", "no lint fires", Needs::Compiler, clippy),
    step_of("rust", "Rust tests", Needs::Cores, rust_tests),
    step_of("nodes", "several gateways share a store on a server", Needs::Cores, tests_of_nodes),
    step_of("package", "the installed wheel and tarball work", Needs::Compiler, package::check_installed),
    step_of(
        "promise",
        "a change of spec/ reaches three languages and the gateway",
        Needs::Compiler,
        promise::keep,
    ),
    step_of(
        "doc",
        "Rust documentation builds, its examples run, and every public type has one",
        Needs::Compiler,
        rust_documentation,
    ),
    step_of(
        "features",
        "the core builds without its client, and the gateway and the packages alone",
        Needs::Compiler,
        check_features,
    ),
    step_of(
        "other-api",
        "generated clients of other specifications call their operations",
        Needs::Compiler,
        other_api::generate_and_call,
    ),
    step_of("rust-guides", "the Rust code of the guides runs", Needs::Compiler, guides::run_rust),
    step_of("deny", "every dependency is allowed and used", Needs::Compiler, deny::check),
    step_of("book", "the site builds with every page, and no link in it is dead", Needs::Compiler, || {
        book::build_book().map(drop)
    }),
    step_of(
        "torture",
        "gateways that are killed, stopped and starved lose nothing",
        Needs::Cores,
        torture::run_short,
    ),
    step_of(
        "clients",
        "clients that others wrote work, whatever the upstream speaks",
        Needs::Cores,
        clients::serve_them,
    ),
    step_of("console", "the console works in a browser, for everybody", Needs::Cores, console::test),
    step_of("python", "Python tests, types and lints", Needs::Cores, python_tests),
    step_of("node", "Node tests, types and lints", Needs::Cores, node_tests),
    step_of("guides", "the code of the guides runs", Needs::Build, guides::run_guides),
    step_of(
        "client-pages",
        "the pages about clients that others wrote run",
        Needs::Build,
        clients::run_pages,
    ),
    step_of(
        "runtimes",
        "the Node package works on other releases of Node, and on Bun",
        Needs::Build,
        runtimes::test_node_package,
    ),
    step_of(
        "peers",
        "other validators agree about the vectors of reports and requests",
        Needs::Build,
        compare_peers,
    ),
    step_of(
        "checkkit",
        "the kit, the agent, another server and another validator agree",
        Needs::Build,
        checkkit::check_with_others,
    ),
    step_of("examples", "every example runs", Needs::Build, run_examples),
    step_of(
        "distributed",
        "a cluster judges a partitioned data set of reports",
        Needs::Build,
        judge_on_a_cluster,
    ),
    step_of("videos", "what the gateway calls a video plays", Needs::Build, play_videos),
    step_of("story", "three languages tell the same story", Needs::Build, demo::compare_stories),
    step_of(
        "install-script",
        "the install script installs what a release has, and nothing else",
        Needs::Build,
        package::check_install_script,
    ),
    step_of("pages", "pages of reports lie well in a browser", Needs::Build, pages::test_pages),
    step_of(
        "migration",
        "a script of the official SDK runs here with two lines changed",
        Needs::Build,
        migration::compare,
    ),
    step_of(
        "requests",
        "generated requests get answers that the specification allows",
        Needs::Build,
        generated_requests::send,
    ),
    step_of("soak", "memory stays flat over many calls and events", Needs::Build, soak::run_short),
];

/// Steps that only run by name: they take long, or need programs that few machines have, or the network.
const BY_NAME_ALONE: &[Step] = &[
    step_of(
        "container",
        "the image is small, serves without rights, keeps its data and ends in peace",
        Needs::Build,
        container::test,
    ),
    step_of("advisories", "no dependency has a known vulnerability", Needs::Sources, advisories::check),
    step_of(
        "powershell",
        "PowerShell completes commands, options and values",
        Needs::Build,
        test_in_powershell,
    ),
];

/// Beginning of the line that reports the processor time of a step, including its processes.
const PROCESSOR: &str = "time of the processor:";

/// Free disk space, in megabytes, below which a failure is probably caused by a full disk.
const SCARCE: u64 = 1024;
/// Size of a clean clone after all steps.
const NEEDED: &str = "17 GB";

/// The names of all steps that run by default, in order.
pub(crate) fn names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

/// Runs the steps that the changes since a commit or branch can break.
pub(crate) fn run_changed(base: &str, keep_going: bool) -> Result<()> {
    let steps = changed::steps_since(base, &names())?;
    if steps.is_empty() {
        eprintln!("no step depends on them");
        return Ok(());
    }
    eprintln!("steps: {}", steps.join(", "));
    run_tests(&steps.into_iter().map(str::to_owned).collect::<Vec<_>>(), keep_going)
}

/// Runs the unit tests of the crates that have changed since a commit or branch, for the edit-test loop: code shared with
/// all other tests is built once for both.
pub(crate) fn run_fast(base: &str) -> Result<()> {
    let packages = changed::packages_since(base)?;
    if packages.is_empty() {
        eprintln!("no crate has changed");
        return Ok(());
    }
    eprintln!("unit tests of {}", packages.join(", "));
    let chosen = packages.iter().map(String::as_str).chain(["gatewright-python"]);
    let mut tests = cargo();
    tests.args(["nextest", "run", "--all-features", "--lib", "--bins", "--no-tests", "pass"]);
    tests.args(chosen.flat_map(|package| ["-p", package]));
    run(tests.args(["--test-threads", &tests_at_once()?, "--status-level", "slow"]))
}

/// Runs the named steps, or all default ones: a single one here, several in parallel.
pub(crate) fn run_tests(wanted: &[String], keep_going: bool) -> Result<()> {
    let by_name = if wanted.is_empty() { &[] } else { BY_NAME_ALONE };
    let steps = || STEPS.iter().chain(by_name);
    if let Some(unknown) = wanted.iter().find(|name| steps().all(|step| step.name != name.as_str())) {
        let further: Vec<&str> = BY_NAME_ALONE.iter().map(|step| step.name).collect();
        bail!(
            "there is no step {unknown:?}; the steps are {}, and by their names alone {}",
            names().join(", "),
            further.join(", ")
        );
    }
    let chosen: Vec<&Step> =
        steps().filter(|step| wanted.is_empty() || wanted.iter().any(|wanted| wanted == step.name)).collect();
    let [only] = chosen.as_slice() else { return schedule::run(&chosen, keep_going) };
    step(&format!("{}: {}", only.name, only.title), only.run).map_err(with_room)?;
    if let Some(seconds) = processor_s() {
        eprintln!("    {PROCESSOR} {seconds:.1} s");
    }
    Ok(())
}

/// Processor time of this process and its ended processes, in seconds. None if there is no `/proc`.
fn processor_s() -> Option<f64> {
    // From the fields after the name in parentheses: utime, stime, cutime and cstime, in hundredths of a
    // second.
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: Vec<u32> = fields.get(11..15)?.iter().filter_map(|field| field.parse().ok()).collect();
    Some(ticks.into_iter().map(f64::from).sum::<f64>() / 100.0)
}

/// Adds to the error that the disk is full, which few programs report. Does nothing if there is no `df`.
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
    codegen::generate(&root(), true)
}

fn lint_spec() -> Result<()> {
    let tools = root().join("tests/tools");
    npm_ci(&tools)?;
    run(command(tools.join("node_modules/.bin/redocly")).current_dir(root().join("spec")).args([
        "lint",
        "--config",
        "redocly.yaml",
        "openapi.yaml",
        "admin.yaml",
    ]))?;
    let bin = venv(&root()).join("bin");
    run(command(bin.join("openapi-spec-validator")).args(["spec/openapi.yaml", "spec/admin.yaml"]))?;
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

/// Checks that the code shared by the gateway and the kit with the clients builds without an HTTP library, that the gateway builds
/// alone, and so do the packages of the clients, whose program is without the gateway.
fn check_features() -> Result<()> {
    for features in [&["--no-default-features"][..], &["--no-default-features", "--features", "report"]] {
        build(cargo().args(["check", "--package", "gatewright"]).args(features))?;
    }
    // In a build of the workspace, other crates add features that it may lack.
    build(cargo().args(["check", "--package", "gatewright-gateway"]))?;
    build(cargo().args(["check", "--package", "gatewright-python", "--package", "gatewright-node"]))
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

fn build_what_is_tested() -> Result<()> {
    artefacts::build_all()?;
    nextest::build_tests()?;
    artefacts::build_programs(&[artefacts::PROGRAM, torture::TORTURE, codegen::GENERATOR])
}

fn rust_tests() -> Result<()> {
    run_nextest(&[])
}

/// The tests that the default filter of `.config/nextest.toml` excludes: they start servers.
fn tests_of_nodes() -> Result<()> {
    run_nextest(&["--ignore-default-filter", "-E", "test(/(^|::)(postgres|redis|nodes)::/)"])
}

fn test_in_powershell() -> Result<()> {
    run_nextest(&["--ignore-default-filter", "-E", "test(powershell_completes)"])
}

fn run_nextest(chosen: &[&str]) -> Result<()> {
    run(nextest::run_tests()?.args(["--test-threads", &tests_at_once()?]).args(chosen))
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
        "../tests/tools",
        "../bench/python",
    ];
    run(in_package("ruff").args(["check", "."]).args(scripts))?;
    run(in_package("ruff").args(["format", "--check", "."]).args(scripts))?;
    let typed = ["../examples/python", "../tests/soak", "tests/typed.py"];
    run(in_package("mypy")
        .args(["--strict", "python/gatewright", "python/_gatewright_program"])
        .args(typed))?;
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

/// The example that runs on Ray, on a cluster on this machine.
fn judge_on_a_cluster() -> Result<()> {
    let folder = root().join("examples/distributed");
    artefacts::pip_install(&folder.join("requirements.txt"))?;
    run(python().arg(folder.join("validate_reports.py")).env("RAY_USAGE_STATS_ENABLED", "0"))
}

fn run_examples() -> Result<()> {
    artefacts::build_engines(Examples::All)?;
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
