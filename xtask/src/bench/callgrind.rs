//! Instructions per operation, counted by valgrind: the same on a busy machine as on an idle one.

use std::fmt::Write as _;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

use super::installs::OurPackages;
use super::measured::Measured;
use super::program::Program;
use super::programs::{Setting, called};
use super::rows::Contender;
use crate::process::{command, missing, output, shown};

/// Operations in the shorter run. The longer has twice as many; the difference is their cost without the startup.
const COUNT: u32 = 20;

/// Includes a tenth more for the warm-up.
const DIFFERENCE: f64 = 22.0;

/// Fails if valgrind is missing.
pub(super) fn check() -> Result<()> {
    match output(command("valgrind").arg("--version")) {
        Ok(_) => Ok(()),
        Err(_) => bail!("--callgrind needs valgrind on PATH"),
    }
}

/// Counts the Rust programs and the Python validators: a table for each row that has any.
pub(super) fn count(rows: &[Measured<'_>], setting: &Setting) -> Result<String> {
    let mut tables = String::new();
    for row in rows {
        // Ours comes first in every row.
        if !row.turns.first().is_some_and(|ours| is_countable(ours.way)) {
            eprintln!(
                "\n{}: not counted, because ours isn't compiled code or runs at the pace of the server",
                row.row.title
            );
            continue;
        }
        let mut counted = Vec::new();
        for turn in row.turns.iter().filter(|turn| is_countable(turn.way)) {
            counted.push((&turn.name, instructions(turn.way, turn.ours, setting)?));
        }
        let (_, ours) = counted[0];
        let mut table = format!("| {} | instructions | ours / this |\n|---|---|---|\n", row.row.title);
        for (name, instructions) in &counted {
            let _ = writeln!(table, "| {name} | {instructions:.0} | {:.3} |", ours / instructions);
        }
        eprintln!("\n{table}");
        let _ = write!(tables, "\n{table}");
    }
    Ok(tables)
}

/// Only compiled code, without the overhead of an interpreter or a JIT; and no paced responses.
fn is_countable(way: &Contender) -> bool {
    let is_compiled =
        matches!(way.program, Program::Rust(_) | Program::AsyncOpenai | Program::Python("reports"));
    is_compiled && !way.subject().starts_with("paced")
}

/// Instructions of one operation.
fn instructions(way: &Contender, ours: &OurPackages, setting: &Setting) -> Result<f64> {
    let [short, long] = [COUNT, 2 * COUNT].map(|count| collected(way, ours, setting, count));
    // In a stream, each chunk is an operation.
    let words = way.subject().split('-').nth(1).and_then(|chunks| chunks.parse::<u32>().ok());
    Ok((long? - short?) / DIFFERENCE / f64::from(words.unwrap_or(1)))
}

fn collected(way: &Contender, ours: &OurPackages, setting: &Setting, count: u32) -> Result<f64> {
    let program = called(way, ours, setting, count)?;
    let mut valgrind = command("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        valgrind.env(name, value.unwrap_or_default());
    }
    let ended = valgrind.stdin(Stdio::null()).output().with_context(|| missing(&valgrind))?;
    let stderr = String::from_utf8_lossy(&ended.stderr);
    let line = stderr.lines().find_map(|line| line.split_once("Collected : "));
    let Some((_, number)) = line.filter(|_| ended.status.success()) else {
        bail!("{} ended with {}\n{stderr}", shown(&valgrind), ended.status);
    };
    number.trim().parse().with_context(|| format!("not a number of instructions: {number}"))
}
