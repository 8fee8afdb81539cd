//! The server's program, built with profile-guided optimization. A first build counts what runs while it serves; the
//! counts tell the second build what to place together, what to inline, and what to move out of the way (decision 0065).

mod training;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::artefacts::{SERVER, target};
use crate::building::build;
use crate::pages::digest;
use crate::process::{cargo, command, host, output, root, run, step};

/// The sources of the build: if they change, the profile is outdated.
const SOURCES: [&str; 4] = ["*.rs", "*.toml", "Cargo.lock", "spec"];

/// The rustc flags that build the program for a target with its profile, which is generated if there is none for these
/// sources. None for targets whose programs can't run here.
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
    // Linkers place functions in module order, unless a script says otherwise: code that never runs would be in between.
    let script = root().join("xtask/src/pgo/sections.ld");
    Ok(vec![
        format!("-Cprofile-use={}", profile.display()),
        // The runtime calls tasks through a table. With a profile that identifies the task, LLVM would inline the whole
        // task into the runtime's loop: one function of 114,000 blocks, which the compiler did not finish in 25 minutes.
        "-Cllvm-args=-disable-icp".to_owned(),
        format!("-Clink-arg=-Wl,-T,{}", script.display()),
    ])
}

/// Sets flags for code built for a target: build scripts and macros are built without them.
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

/// The program as in the packages, built for this machine; `guided`: with its profile.
pub(crate) fn program(guided: bool) -> Result<PathBuf> {
    let target_triple = host()?;
    let flags = if guided { flags(&target_triple)? } else { Vec::new() };
    build_with(&target_triple, &flags)
}

/// The instrumented program. It can't be built with a faster cargo profile: function names depend on the cargo profile, and
/// the counts are matched by name.
fn counting(target_triple: &str) -> Result<PathBuf> {
    let built = build_with(target_triple, &["-Cprofile-generate".to_owned()])?;
    let counting = target().join("guided").join(SERVER);
    std::fs::copy(built, &counting)?;
    Ok(counting)
}

fn build_with(target_triple: &str, flags: &[String]) -> Result<PathBuf> {
    let mut call = cargo();
    call.args(["build", "--locked", "--profile", "dist", "-p", SERVER, "--target", target_triple]);
    build(with_flags(&mut call, target_triple, flags))?;
    Ok(target().join(target_triple).join("dist").join(SERVER))
}

fn sources() -> Result<Vec<PathBuf>> {
    let list = output(
        command("git").args(["ls-files", "--cached", "--others", "--exclude-standard", "--"]).args(SOURCES),
    )?;
    // Files removed but not yet committed are listed, too.
    Ok(list.lines().map(|line| root().join(line)).filter(|path| path.is_file()).collect())
}

/// The program that merges counts. It must be from the same LLVM release as rustc's: from rustup's component, or Debian's
/// package.
fn llvm_profdata() -> Result<PathBuf> {
    let sysroot = output(command("rustc").args(["--print", "sysroot"]))?;
    let of_rustup = Path::new(sysroot.trim()).join("lib/rustlib").join(host()?).join("bin/llvm-profdata");
    if of_rustup.exists() {
        return Ok(of_rustup);
    }
    let version_text = output(command("rustc").arg("-vV"))?;
    let version = version_text.lines().find_map(|line| line.strip_prefix("LLVM version: "));
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
