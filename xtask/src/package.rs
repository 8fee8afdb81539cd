//! `cargo xtask package`: what registries and releases get. The wheels, npm tarballs and archive for a target, or the source
//! distribution and the crates; the test that installs them into clean environments, and the suites on what is in `dist/`.

mod archive;
mod as_documented;
mod crates;
mod included;
mod node;
mod python;
mod suites;
mod zig;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::artefacts::{self, Examples, SERVER, create_venv, install_python_tools, target};
use crate::building;
use crate::pgo;
use crate::process::{cargo, command, files_of, host, output, root, run, step, tests_at_once};
pub(crate) use suites::run_suites;
use zig::Zig;

/// How packages are compiled (decision 0084).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// In minutes, for users of a checkout.
    Local,
    /// As small and as fast as possible. `guided`: the server's program uses a profile of what it does.
    Published { guided: bool },
}

impl Form {
    /// The cargo profile.
    fn profile(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Published { .. } => "dist",
        }
    }

    /// Makes the client's packages of the same dependencies as the server's.
    fn client_features(self) -> &'static [&'static str] {
        match self {
            Self::Local => &["--features", "beside-server"],
            Self::Published { .. } => &[],
        }
    }

    /// Options of maturin for the wheel of a crate.
    fn wheel_options(self, manifest: &str) -> &'static [&'static str] {
        match self {
            Self::Local if manifest == python::CLIENT => self.client_features(),
            Self::Local => &[],
            Self::Published { .. } => &["--compression-level", "9"],
        }
    }
}

/// Writes `dist/*.whl` and `dist/*.tgz` for a target and, if they are to be published, the archive of the program.
pub(crate) fn run_package(target: Option<&str>, form: Form) -> Result<()> {
    match form {
        Form::Local => artefacts::install_packaging_tools()?,
        Form::Published { .. } => install_python_tools()?,
    }
    let made = empty_folder("packages")?;
    build_packages(target, form, &made)?;
    if form == Form::Local {
        return hand_over(&made);
    }
    step("check the wheels", || python::check_metadata(&files_of(&made, "whl")?))?;
    step("lint the tarballs", || node::lint(&made))?;
    hand_over(&made)?;
    check_sizes(&made)
}

/// Maximum size of a client wheel or tarball, in bytes. Users who only make calls don't download a gateway.
const MAX_WHEEL_BYTES: u64 = 6_000_000;

fn check_sizes(made: &Path) -> Result<()> {
    let mut too_large = Vec::new();
    for path in files_of(made, "whl")?.into_iter().chain(files_of(made, "tgz")?) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.contains("server") {
            continue;
        }
        let size = path.metadata()?.len();
        eprintln!("    {name}: {size} of {MAX_WHEEL_BYTES} bytes");
        if size > MAX_WHEEL_BYTES {
            too_large.push(name.into_owned());
        }
    }
    if !too_large.is_empty() {
        let list = too_large.join(", ");
        bail!("{list}: more than {MAX_WHEEL_BYTES} bytes; see what takes the room (docs/decisions/0061)");
    }
    Ok(())
}

/// Writes `dist/*.tar.gz` and `dist/*.crate`, and builds each from only its archive.
pub(crate) fn run_source() -> Result<()> {
    install_python_tools()?;
    let made = empty_folder("packages")?;
    write_manual_as_tested()?;
    step("pack the source distribution", || python::write_sdist(&made))?;
    step("build it in a clean environment", || python::build_sdist(&made))?;
    step("build the crates from their archives", || crates::build_each(&made))?;
    hand_over(&made)
}

fn empty_folder(name: &str) -> Result<PathBuf> {
    let place = target().join(name);
    if place.exists() {
        std::fs::remove_dir_all(&place)?;
    }
    std::fs::create_dir_all(&place)?;
    Ok(place)
}

/// Copies the results to `dist`.
fn hand_over(made: &Path) -> Result<()> {
    let dist = root().join("dist");
    std::fs::create_dir_all(&dist)?;
    for entry in std::fs::read_dir(made)? {
        let path = entry?.path();
        let place = dist.join(path.file_name().unwrap_or_default());
        std::fs::copy(&path, &place)?;
        eprintln!("    {} ({} KiB)", place.display(), place.metadata()?.len() / 1024);
    }
    Ok(())
}

/// Packages with the debug profile, checks the archives, installs both packages into a clean venv and a clean folder, and
/// runs the vectors there.
pub(crate) fn check_installed() -> Result<()> {
    let place = empty_folder("package-check")?;
    step("check the crates' archives", crates::check)?;
    build_as_tested(&place)?;
    step("pack the source distribution", || python::write_sdist(&place))?;
    step("check the Python archives", || python::check(&place))?;
    step("lint the tarballs", || node::lint(&place))?;
    step("use the installed wheel", || use_wheel(&place))?;
    step("use the installed tarballs", || use_tarballs(&place))?;
    step("use the wheel without the gateway, alone and with the server", || use_lean_wheel(&place))?;
    step("use the tarballs without the gateway, alone and with the server", || use_lean_tarballs(&place))?;
    step("install as the README and the tutorial tell", || as_documented::install(&place))
}

/// Installs an archive of the debug build with the install script.
pub(crate) fn check_install_script() -> Result<()> {
    archive::check_script(&empty_folder("install-script")?)
}

fn use_wheel(place: &Path) -> Result<()> {
    let clean = place.join("venv");
    create_venv(&clean)?;
    let pip = || {
        let mut pip = command(clean.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]);
        pip
    };
    run(pip().arg("--no-index").arg(python::only(place, "whl")?))?;
    run(command(clean.join("bin/python"))
        .args(artefacts::pip_install_locked("tests/tools/requirements-vectors.txt")))?;
    run(command(clean.join("bin/python")).current_dir(place).args(["-c", INSTALLED]).arg(&clean))?;
    run(command(clean.join("bin/python"))
        .current_dir(place)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", &tests_at_once()?])
        .arg(root().join("bindings-python/tests/test_vectors.py")))?;
    run(command(clean.join("bin/gatewright")).current_dir(place).arg("--version"))?;
    check_manual(&clean.join("share/man/man1/gatewright.1"))
}

/// Features of a wheel without the gateway that is made of what the tests have built. The step `features` checks that it builds without
/// them, too, as published.
const WHEEL_WITHOUT_GATEWAY: [&str; 2] = ["--features", "beside-server,as-tested"];
/// The same for the addon.
const ADDON_WITHOUT_GATEWAY: [&str; 2] = [
    "--features",
    "gatewright-node/beside-server,gatewright-python/beside-server,gatewright-python/as-tested",
];

fn use_lean_wheel(place: &Path) -> Result<()> {
    let (lean, clean) = (place.join("lean"), place.join("lean-venv"));
    let mut wheel = python::maturin("build", python::CLIENT, &lean);
    building::build(wheel.args(["--profile", "dev"]).args(WHEEL_WITHOUT_GATEWAY))?;
    create_venv(&clean)?;
    let pip = || {
        let mut pip = command(clean.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-index"]);
        pip
    };
    run(pip().arg(python::only(&lean, "whl")?))?;
    let server = place.join("server");
    python::pack_server(&artefacts::program(), &server)?;
    python::check_metadata(&files_of(&server, "whl")?)?;
    hand_commands_over(&clean.join("bin/gatewright"), "pip install 'gatewright[server]'", || {
        run(pip().arg("--find-links").arg(&lean).arg("--find-links").arg(&server).arg("gatewright[server]"))
    })
}

fn use_lean_tarballs(place: &Path) -> Result<()> {
    let (lean, server, folder) = (place.join("lean"), place.join("server"), place.join("lean-node"));
    let platform = node::platform_of(&host()?)?;
    // Without the wheel's `whole-program`, the addon contains no gateway. The wheel is selected only for its features.
    let packages = ["build", "--lib", "-p", "gatewright-node", "-p", "gatewright-python"];
    building::build(cargo().args(packages).args(ADDON_WITHOUT_GATEWAY))?;
    node::pack_engine(&target().join("debug/libgatewright_node.so"), &platform, &lean)?;
    let (main, _) = node::tarballs(place)?;
    create_project(&folder)?;
    node::install(&[main, python::only(&lean, "tgz")?], &folder)?;
    // Without npx, which would put the other package's program on PATH.
    let program = folder.join("node_modules/.bin/gatewright");
    hand_commands_over(&program, "npm install @gatewright/server", || {
        let built = place.join("server-program");
        std::fs::create_dir_all(&built)?;
        // The server's program is the whole program under another name.
        std::fs::copy(artefacts::program(), built.join("gatewright-server"))?;
        node::pack_server(&built, &platform, &server)?;
        node::lint_each(&files_of(&server, "tgz")?)?;
        node::install(&files_of(&server, "tgz")?, &folder)
    })
}

/// A program without the gateway, as users get it, delegates the gateway's commands to the program from another package.
/// advice: its message without that package. install: installs the other package.
fn hand_commands_over(program: &Path, advice: &str, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let help = || {
        let mut program = command(program);
        program.args(["--color", "never", "keys", "--help"]);
        program
    };
    let alone = help().output()?;
    let stderr = String::from_utf8_lossy(&alone.stderr);
    if alone.status.code() != Some(2) || !stderr.contains("`gatewright keys`") || !stderr.contains(advice) {
        bail!("without the server, `gatewright keys` should say what to install, and says:\n{stderr}");
    }
    install()?;
    let help_text = output(&mut help())?;
    if !help_text.contains("rotate") {
        bail!("with the server, `gatewright keys --help` should be its help, and is:\n{help_text}");
    }
    Ok(())
}

fn use_tarballs(place: &Path) -> Result<()> {
    let folder = place.join("node");
    create_project(&folder)?;
    std::fs::create_dir_all(folder.join("test/support"))?;
    let (main, platforms) = node::tarballs(place)?;
    node::install(&[vec![main], platforms].concat(), &folder)?;
    check_manual(&folder.join("node_modules/gatewright/man/gatewright.1"))?;
    for name in [
        "vectors.test.mjs",
        "report.test.mjs",
        "support/process.mjs",
        "support/vectors.mjs",
        "support/server.mjs",
    ] {
        std::fs::copy(root().join("bindings-node/test").join(name), folder.join("test").join(name))?;
    }
    run(command("node")
        .current_dir(&folder)
        .env("GATEWRIGHT_VECTORS", root().join("tests/vectors"))
        .args(["--test", "test/vectors.test.mjs", "test/report.test.mjs"]))?;
    node::refuse_browsers(&folder)?;
    run(command("npx").current_dir(&folder).args(["--no-install", "gatewright", "--version"]))
}

/// A folder for npm to install into.
fn create_project(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    Ok(std::fs::write(folder.join("package.json"), "{\"private\": true}\n")?)
}

/// Fails unless the imported package is the installed one.
const INSTALLED: &str =
    "import sys, gatewright; assert gatewright.__file__.startswith(sys.argv[1]), gatewright.__file__";

/// Builds the packages of the server and of the client, linked against an old C library, so that they work on other machines.
/// The server's program is built first: it writes the manual of all commands, which the client's packages contain.
fn build_packages(target: Option<&str>, form: Form, into: &Path) -> Result<()> {
    let zig = Zig::new(&target.map_or_else(host, |target| Ok(target.to_owned()))?)?;
    let platform = node::platform_of(&zig.target)?;
    let profile = form.profile();
    let package_wheel = |manifest, flags: &[String]| {
        let mut wheel = python::maturin("build", manifest, into);
        wheel.args(["--profile", profile, "--compatibility", zig.policy, "--target", &zig.target]);
        wheel.args(form.wheel_options(manifest));
        building::build(pgo::with_flags(zig.links(&mut wheel)?, &zig.target, flags))
    };
    let flags =
        if form == (Form::Published { guided: true }) { pgo::flags(&zig.target)? } else { Vec::new() };
    let built = format!("{}/{profile}", zig.target);
    let programs = artefacts::target().join(&built);
    step("package the server's wheel", || package_wheel(python::SERVER, &flags))?;
    let native = if zig.target == host()? {
        step("write the manual", || write_manual(&programs.join(SERVER)))?;
        programs.join(SERVER)
    } else {
        write_manual_as_tested()?;
        artefacts::program()
    };
    if form != Form::Local {
        step("pack the archive", || archive::pack(&programs.join(SERVER), &native, &zig.target, into))?;
    }
    step("package the wheel", || package_wheel(python::CLIENT, &[]))?;
    step("package the tarballs", || {
        // The wheel's build has built the dependencies, with the same features.
        let mut addon = cargo();
        addon.args(["build", "-p", "gatewright-node", "--profile", profile, "--target", &zig.target]);
        addon.args(form.client_features());
        building::build(zig.links(&mut addon)?)?;
        node::pack(&built, &platform, into)?;
        node::pack_server(&programs, &platform, into)
    })
}

/// Builds both from the artifacts of the tests.
fn build_as_tested(into: &Path) -> Result<()> {
    write_manual_as_tested()?;
    step("package the wheel", || {
        building::build(python::maturin("build", python::CLIENT, into).args([
            "--profile",
            "dev",
            "--all-features",
        ]))
    })?;
    step("package the tarballs", || {
        artefacts::build_engines(Examples::All)?;
        node::pack("debug", &node::platform_of(&host()?)?, into)
    })
}

/// Makes the program of the tests write its manual.
fn write_manual_as_tested() -> Result<()> {
    step("write the manual", || {
        artefacts::build_programs(&[artefacts::PROGRAM])?;
        write_manual(&artefacts::program())
    })
}

/// Makes a program with all commands write its manual where the wheel and the tarball take it from.
fn write_manual(program: &Path) -> Result<()> {
    let folders = [root().join("bindings-python").join(python::MANUAL), root().join("bindings-node/man")];
    for folder in folders {
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        run(command(program).arg("man").arg(folder))?;
    }
    Ok(())
}

/// Fails unless the manual is among the installed files.
fn check_manual(page: &Path) -> Result<()> {
    let text = std::fs::read_to_string(page).with_context(|| format!("no manual page {}", page.display()))?;
    if !text.contains("gatewright") {
        bail!("{} is no manual page of the program", page.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The dependencies of a package of this workspace, for the program or library that is built: name and version, and features.
    fn dependencies_of(package: &str, features: &[&str]) -> BTreeMap<String, String> {
        let mut tree = cargo();
        tree.args(["tree", "--locked", "-p", package, "-e", "normal,build", "--prefix", "none"]);
        tree.args(["-f", "{p}\t{f}"]).args(features);
        let lines = output(&mut tree).expect("cargo lists the dependencies");
        // A line ends with ` (*)` if the dependencies of its package were listed before.
        lines
            .lines()
            .map(|line| line.trim_end_matches(" (*)").split_once('\t').expect("a package and its features"))
            .map(|(package, features)| (package.to_owned(), features.to_owned()))
            .collect()
    }

    #[test]
    fn packages_to_use_are_made_of_what_the_server_is_made_of() {
        // Decision 0084: a feature that only one of them asks for compiles a dependency, and all that depends on it, again.
        let server = dependencies_of("gatewright-server", &[]);
        for package in ["gatewright-python", "gatewright-node"] {
            let client = dependencies_of(package, Form::Local.client_features());
            let shared = client.iter().filter(|(name, _)| server.contains_key(*name));
            let (same, other): (Vec<_>, Vec<_>) =
                shared.partition(|(name, features)| server[*name] == **features);
            assert!(same.len() > 200, "{package} has {} dependencies as the server has them", same.len());
            let other: Vec<_> = other
                .into_iter()
                // Has the gateway's commands in the server's program alone.
                .filter(|(name, _)| !name.starts_with("gatewright-cli "))
                .map(|(name, features)| format!("{name}: {features}, in the server: {}", server[name]))
                .collect();
            assert_eq!(other, Vec::<String>::new(), "{package}: see `beside-server` in its Cargo.toml");
        }
    }

    /// The message of `.ci/installed` about a folder with these files and sizes, which it rejects.
    fn refused(files: &[(&str, u64)]) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, size) in files {
            let file = std::fs::File::create(folder.path().join(name)).expect("it is made");
            file.set_len(*size).expect("it has a length");
        }
        let output = command(root().join(".ci/installed"))
            .arg(folder.path())
            .arg("linux-x64-gnu")
            .output()
            .expect("bash runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    #[test]
    fn oversized_client_package_is_rejected_on_every_platform() {
        let message = refused(&[
            ("gatewright-0.1.0-cp310-abi3-any.whl", MAX_WHEEL_BYTES),
            ("gatewright-0.1.0.tgz", 1),
            ("gatewright-linux-x64-gnu-0.1.0.tgz", MAX_WHEEL_BYTES + 1),
            ("gatewright_server-0.1.0-py3-none-any.whl", MAX_WHEEL_BYTES + 1),
            ("gatewright-server-0.1.0.tgz", 1),
            ("gatewright-server-linux-x64-gnu-0.1.0.tgz", MAX_WHEEL_BYTES + 1),
        ]);
        assert!(message.contains(&format!("takes more than {MAX_WHEEL_BYTES} bytes")), "{message}");
    }

    #[test]
    fn missing_package_is_reported_before_installation() {
        let message = refused(&[("gatewright-0.1.0-cp310-abi3-any.whl", 1), ("gatewright-0.1.0.tgz", 1)]);
        assert!(message.contains("linux-x64-gnu: one file is expected"), "{message}");
        assert!(message.contains("gatewright-linux-x64-gnu-*.tgz"), "{message}");
    }
}
