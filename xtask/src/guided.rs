//! The server's program, built with a profile. A first build counts what runs while it serves; the counts tell the second
//! one what to lay side by side, what to inline, and what to move out of the way (decision 0065).

mod training;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::artefacts::target;
use crate::building::build;
use crate::pages::digest;
use crate::process::{cargo, command, host, output, root, run, step};

/// The crate of the program, and its name.
pub(crate) const PROGRAM: &str = "gatewright-server";

/// What the build depends on: the profile of other files is another one.
const SOURCES: [&str; 4] = ["*.rs", "*.toml", "Cargo.lock", "spec"];

/// The flags for rustc that build the program for a target with its profile, which is made if there is none of these sources.
/// For a target whose programs do not run here: none.
pub(crate) fn flags(target_triple: &str) -> Result<Vec<String>> {
    if target_triple != host()? {
        eprintln!("    without a profile: programs for {target_triple} do not run here");
        return Ok(Vec::new());
    }
    let folder = target().join("guided");
    std::fs::create_dir_all(&folder)?;
    let profile = folder.join(format!("{}.profdata", digest(&sources()?)?));
    if !profile.exists() {
        let merge = llvm_profdata()?;
        let counting = step("build the program so that it counts what runs", || counting(target_triple))?;
        let raw = folder.join("raw");
        if raw.exists() {
            std::fs::remove_dir_all(&raw)?;
        }
        step("let it serve", || training::train(&counting, &raw))?;
        let unfinished = profile.with_extension("unfinished");
        run(command(merge).arg("merge").arg("-o").arg(&unfinished).arg(&raw))?;
        std::fs::rename(unfinished, &profile)?;
    }
    // Linkers lay functions in the order of the modules, unless a script says otherwise: what never runs would lie between.
    let script = root().join("xtask/src/guided/sections.ld");
    Ok(vec![
        format!("-Cprofile-use={}", profile.display()),
        // The runtime calls tasks through a table. A profile tells which one it is, and LLVM would put all that a task does
        // into the loop of the runtime: one function of 114,000 blocks, which the compiler did not finish in 25 minutes.
        "-Cllvm-args=-disable-icp".to_owned(),
        format!("-Clink-arg=-Wl,-T,{}", script.display()),
    ])
}

/// Sets flags for what is built for a target: build scripts and macros are built without them.
pub(crate) fn with_flags<'a>(
    command: &'a mut Command,
    target_triple: &str,
    flags: &[String],
) -> &'a mut Command {
    if flags.is_empty() {
        return command;
    }
    let variable = format!("CARGO_TARGET_{}_RUSTFLAGS", target_triple.replace('-', "_").to_uppercase());
    let given = command.get_envs().find(|(name, _)| *name == variable.as_str()).and_then(|(_, value)| value);
    let given = given.map(|value| value.to_string_lossy().into_owned());
    command.env(variable, given.into_iter().chain(flags.iter().cloned()).collect::<Vec<_>>().join(" "))
}

/// The program as packages have it, built for this machine; `guided`: with its profile.
pub(crate) fn program(guided: bool) -> Result<PathBuf> {
    let target_triple = host()?;
    let flags = if guided { flags(&target_triple)? } else { Vec::new() };
    build_with(&target_triple, &flags)
}

/// The program that counts what runs. It cannot be built faster than the other: the names of functions depend on the profile
/// of cargo, and the counts are found by the names.
fn counting(target_triple: &str) -> Result<PathBuf> {
    let built = build_with(target_triple, &["-Cprofile-generate".to_owned()])?;
    let counting = target().join("guided").join(PROGRAM);
    std::fs::copy(built, &counting)?;
    Ok(counting)
}

fn build_with(target_triple: &str, flags: &[String]) -> Result<PathBuf> {
    let mut call = cargo();
    call.args(["build", "--locked", "--profile", "dist", "-p", PROGRAM, "--target", target_triple]);
    build(with_flags(&mut call, target_triple, flags))?;
    Ok(target().join(target_triple).join("dist").join(PROGRAM))
}

fn sources() -> Result<Vec<PathBuf>> {
    let list = output(
        command("git").args(["ls-files", "--cached", "--others", "--exclude-standard", "--"]).args(SOURCES),
    )?;
    // What was removed and not yet committed is listed, too.
    Ok(list.lines().map(|line| root().join(line)).filter(|path| path.is_file()).collect())
}

/// The program that merges counts. It has to be of the release of LLVM that rustc is of: the one of rustup's component, or of
/// Debian's package.
fn llvm_profdata() -> Result<PathBuf> {
    let sysroot = output(command("rustc").args(["--print", "sysroot"]))?;
    let of_rustup = Path::new(sysroot.trim()).join("lib/rustlib").join(host()?).join("bin/llvm-profdata");
    if of_rustup.exists() {
        return Ok(of_rustup);
    }
    let told = output(command("rustc").arg("-vV"))?;
    let version = told.lines().find_map(|line| line.strip_prefix("LLVM version: "));
    let release = version.and_then(|version| version.split('.').next()).context("rustc names no LLVM")?;
    let of_debian = PathBuf::from(format!("llvm-profdata-{release}"));
    if command(&of_debian).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Ok(of_debian);
    }
    bail!(
        "there is no llvm-profdata of LLVM {release}: `rustup component add llvm-tools` brings it, and so does Debian's package \
         llvm-{release}"
    )
}
