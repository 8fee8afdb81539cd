//! `cargo xtask fuzz`: searches for inputs that break a target, for a bounded time, starting from the test vectors.
//!
//! The targets in `fuzz/` have the layout of cargo-fuzz. They are built here without it, because the compiler flags
//! that libFuzzer needs work with a stable compiler as long as no sanitizer is requested: safe Rust has its own bounds
//! checks, and debug assertions and overflow checks are on.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::artefacts::target;
use crate::building;
use crate::process::{cargo, command, files_of, host, root, step};

mod seeds;

/// The flags that cargo-fuzz passes to rustc if no sanitizer is used.
const INSTRUMENTATION: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Ccodegen-units=16";

/// Maximum length of an input, in bytes: long enough for every vector.
const MAX_INPUT_BYTES: usize = 16 * 1024;

/// An input that takes longer is a finding: work is linear, and the longest input takes milliseconds.
const SLOW_INPUT_S: usize = 5;

/// Resident memory at which the search stops with a finding, in MiB.
const MAX_MEMORY_MIB: usize = 2048;

/// Fuzzes the named target, or all with an equal share each, for `seconds` in total.
pub(crate) fn run_fuzz(only: Option<&str>, seconds: u64) -> Result<()> {
    let all = targets()?;
    let chosen: Vec<&String> = all.iter().filter(|name| only.is_none_or(|only| only == *name)).collect();
    if chosen.is_empty() {
        bail!("there is no target {:?}; the targets are {}", only.unwrap_or_default(), all.join(", "));
    }
    let built = step("build the fuzz targets", || build(only))?;
    let each = (seconds / chosen.len() as u64).max(1);
    for name in chosen {
        step(&format!("fuzz {name} for {each} s"), || search(&built.join(name), name, each))?;
    }
    Ok(())
}

fn targets() -> Result<Vec<String>> {
    let files = files_of(&root().join("fuzz/targets"), "rs")?;
    Ok(files.iter().filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect())
}

/// Builds into a separate folder, because everything is compiled with the instrumentation.
fn build(only: Option<&str>) -> Result<PathBuf> {
    let folder = target().join("fuzz");
    let host = host()?;
    let mut build = cargo();
    // With `--target`, the flags do not apply to build scripts and procedural macros.
    build.args(["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &host]);
    if let Some(name) = only {
        build.args(["--bin", name]);
    }
    building::build(build.env("CARGO_TARGET_DIR", &folder).env("RUSTFLAGS", INSTRUMENTATION))?;
    Ok(folder.join(host).join("release"))
}

fn search(program: &Path, name: &str, seconds: u64) -> Result<()> {
    let work = target().join("fuzz").join(name);
    let (corpus, seeds, findings) = (work.join("corpus"), work.join("seeds"), work.join("findings"));
    for folder in [&corpus, &seeds, &findings] {
        std::fs::create_dir_all(folder)?;
    }
    seeds::write(name, &seeds)?;
    let done = command(program)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={MAX_INPUT_BYTES}"))
        .arg(format!("-timeout={SLOW_INPUT_S}"))
        .arg(format!("-rss_limit_mb={MAX_MEMORY_MIB}"))
        .arg(format!("-artifact_prefix={}/", findings.display()))
        .args(["-print_final_stats=1", "-verbosity=0"])
        .args([&corpus, &seeds])
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let stderr = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() {
        bail!(
            "{name} found an input that breaks it:\n{stderr}\nThe input is in {}; run `{} FILE` to see it again, and \
             make it a test vector",
            findings.display(),
            program.display()
        );
    }
    let statistic = |key: &str| {
        let line =
            stderr.lines().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(key)?.strip_prefix(':'));
        line.map_or("?", str::trim).to_owned()
    };
    let (inputs, new) = (statistic("number_of_executed_units"), statistic("new_units_added"));
    eprintln!("    {inputs} inputs, {new} with new code paths; none fails");
    Ok(())
}
