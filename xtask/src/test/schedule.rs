//! Runs steps in parallel, each in its own process, whose output is shown when it ends.
//!
//! Testing steps need the processor immediately and spend much time waiting; compiling steps can use the rest. So compiling
//! steps run one after the other at low priority, in parallel with at most [`TESTING_AT_ONCE`] testing steps, or with one
//! that runs many tests in parallel itself. Tests that depend on timing therefore see the same machine as when they run
//! alone.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::{Needs, Step};
use crate::artefacts::{BUILT_VARIABLE, target};
use crate::process::command;

/// Number of testing steps that run in parallel.
const TESTING_AT_ONCE: usize = 2;
/// The `nice` priority of compiling steps: they get a fiftieth of a processor that a test needs.
const COMPILING_NICENESS: &str = "17";
/// The step that the others with [`Needs::Build`] wait for.
const BUILD: &str = "build";
/// Lines of a failed step's output that are shown again at the end, where people look first.
const MAX_LINES_AGAIN: usize = 40;
/// Interval for polling the processes, which are few and run for seconds.
const POLL: Duration = Duration::from_millis(50);

/// Runs the steps, and prints the time of each at the end. Unless it keeps going, no further step starts after a failure.
/// Errors: the names of all failed steps.
pub(super) fn run(steps: &[&Step], keep_going: bool) -> Result<()> {
    let folder = target().join("test");
    std::fs::create_dir_all(&folder)?;
    // A step that compiles the workspace replaces this program.
    let program = folder.join("xtask");
    std::fs::copy(std::env::current_exe()?, &program).context("cannot copy this program")?;

    let started = Instant::now();
    let mut waiting: VecDeque<&Step> = steps.iter().copied().collect();
    let mut running: Vec<RunningStep<'_>> = Vec::new();
    let mut ended: Vec<FinishedStep> = Vec::new();
    loop {
        let is_failing = !keep_going && ended.iter().any(|step| !step.passed);
        // Running steps may finish.
        while !is_failing && let Some(next) = startable(&waiting, &running) {
            let step = waiting.remove(next).context("a step that waits")?;
            eprintln!("==> {} begins: {}", step.name, step.title);
            let is_built = ended.iter().any(|ended| ended.name == BUILD);
            running.push(RunningStep::start(step, &program, &folder, is_built)?);
        }
        if running.is_empty() {
            break;
        }
        let before = ended.len();
        for mut step in std::mem::take(&mut running) {
            match step.child.try_wait()? {
                None => running.push(step),
                Some(status) => ended.push(step.end(status)?),
            }
        }
        if ended.len() == before {
            std::thread::sleep(POLL);
        }
    }
    show_times(&ended, started.elapsed());
    show_failures(&ended);
    let failed: Vec<&str> = ended.iter().filter(|step| !step.passed).map(|step| step.name).collect();
    if !failed.is_empty() {
        bail!("failed: {}; {} further steps did not run", failed.join(", "), waiting.len());
    }
    Ok(())
}

/// The position of the first step that may start alongside the running ones.
fn startable(waiting: &VecDeque<&Step>, running: &[RunningStep<'_>]) -> Option<usize> {
    let unfinished = |name: &str| {
        waiting.iter().any(|step| step.name == name) || running.iter().any(|step| step.step.name == name)
    };
    let needs: Vec<Needs> = running.iter().map(|step| step.step.needs).collect();
    first_of(waiting.iter().map(|step| step.needs), &needs, unfinished(BUILD))
}

/// The same, by needs only.
fn first_of(waiting: impl Iterator<Item = Needs>, running: &[Needs], unbuilt: bool) -> Option<usize> {
    // Testing steps start in order: otherwise one that needs every core would wait for all others.
    let mut is_held_back = false;
    for (position, needs) in waiting.enumerate() {
        if (needs == Needs::Compiler || !is_held_back) && may_start(needs, running, unbuilt) {
            return Some(position);
        }
        is_held_back |= needs == Needs::Cores && !unbuilt;
    }
    None
}

/// Whether a step may start alongside steps with these needs. `unbuilt`: whether the results of the step `build` are still
/// to come.
fn may_start(needs: Needs, running: &[Needs], unbuilt: bool) -> bool {
    let testing = running.iter().filter(|needs| **needs != Needs::Compiler).count();
    match needs {
        Needs::Compiler => !running.contains(&Needs::Compiler),
        Needs::Sources => testing < TESTING_AT_ONCE,
        Needs::Build => !unbuilt && testing < TESTING_AT_ONCE && !running.contains(&Needs::Cores),
        Needs::Cores => !unbuilt && testing == 0,
    }
}

/// A running step.
struct RunningStep<'a> {
    step: &'a Step,
    child: Child,
    output: PathBuf,
    started: Instant,
}

/// A step that has ended.
struct FinishedStep {
    name: &'static str,
    passed: bool,
    wall: Duration,
    processor_s: f64,
    /// How the output of a failed step ends. Empty if it passed.
    last_lines: String,
}

impl<'a> RunningStep<'a> {
    fn start(step: &'a Step, program: &Path, folder: &Path, is_built: bool) -> Result<Self> {
        let output = folder.join(step.name).with_extension("log");
        let file = File::create(&output).with_context(|| format!("cannot write {}", output.display()))?;
        // Other steps wait for the step `build`, so it gets the processor to itself.
        let mut run = if matches!(step.needs, Needs::Compiler) && step.name != BUILD {
            let mut nice = command("nice");
            nice.args(["-n", COMPILING_NICENESS]).arg(program);
            nice
        } else {
            command(program)
        };
        run.args(["test", step.name]).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        if is_built {
            run.env(BUILT_VARIABLE, "1");
        }
        let child = run.spawn().with_context(|| format!("cannot start the step {}", step.name))?;
        Ok(Self { step, child, output, started: Instant::now() })
    }

    fn end(self, status: ExitStatus) -> Result<FinishedStep> {
        let wall = self.started.elapsed();
        let mut text = Vec::new();
        File::open(&self.output)?.read_to_end(&mut text)?;
        let processor_s = processor_seconds(&text);
        let mut stderr = std::io::stderr().lock();
        stderr.write_all(&text)?;
        if !status.success() {
            writeln!(stderr, "    {} FAILED: {status}", self.step.name)?;
        }
        let last_lines = if status.success() { String::new() } else { last_lines(&text) };
        Ok(FinishedStep { name: self.step.name, passed: status.success(), wall, processor_s, last_lines })
    }
}

/// The value of [`super::PROCESSOR`] in the output of a step.
fn processor_seconds(output: &[u8]) -> f64 {
    let text = String::from_utf8_lossy(output);
    let seconds = text.lines().rev().find_map(|line| line.trim().strip_prefix(super::PROCESSOR));
    seconds.and_then(|rest| rest.trim().trim_end_matches(" s").parse().ok()).unwrap_or(f64::NAN)
}

/// The last [`MAX_LINES_AGAIN`] lines of an output.
fn last_lines(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(MAX_LINES_AGAIN)..].join("\n")
}

/// Repeats how the output of each failed step ends: a long log is often cut in the middle.
fn show_failures(ended: &[FinishedStep]) {
    for step in ended.iter().filter(|step| !step.passed) {
        eprintln!("==> {} failed; its output ends:\n{}", step.name, step.last_lines);
    }
}

fn show_times(ended: &[FinishedStep], whole: Duration) {
    eprintln!("==> {} steps in {:.0} s", ended.len(), whole.as_secs_f64());
    let mut slowest: Vec<&FinishedStep> = ended.iter().collect();
    slowest.sort_by_key(|step| std::cmp::Reverse(step.wall));
    eprintln!("    {:>14} {:>8} {:>10}", "step", "seconds", "processor");
    for step in slowest {
        eprintln!("    {:>14} {:>8.0} {:>10.0}", step.name, step.wall.as_secs_f64(), step.processor_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_compiling_step_runs_alongside_two_testing_steps() {
        use Needs::{Build, Compiler, Sources};
        assert!(may_start(Compiler, &[], true));
        assert!(may_start(Compiler, &[Build, Build], false));
        assert!(!may_start(Compiler, &[Compiler], false));
        assert!(may_start(Sources, &[Compiler], true));
        assert!(!may_start(Sources, &[Compiler, Sources, Build], false));
        assert!(may_start(Build, &[Compiler], false));
        assert!(may_start(Build, &[Compiler, Build], false));
        assert!(!may_start(Build, &[Build, Build], false));
    }

    #[test]
    fn all_core_step_runs_alongside_no_testing_step() {
        use Needs::{Build, Compiler, Cores};
        assert!(may_start(Cores, &[Compiler], false));
        assert!(!may_start(Cores, &[Build], false));
        assert!(!may_start(Build, &[Cores], false));
    }

    #[test]
    fn all_core_step_is_not_overtaken_by_testing_steps() {
        use Needs::{Build, Compiler, Cores, Sources};
        let first = |waiting: &[Needs], running: &[Needs]| first_of(waiting.iter().copied(), running, false);
        assert_eq!(first(&[Cores, Build, Sources, Compiler], &[Build]), Some(3));
        assert_eq!(first(&[Cores, Build], &[Build]), None);
        assert_eq!(first(&[Build, Cores], &[Build]), Some(0));
        assert_eq!(first_of([Cores, Sources].into_iter(), &[Compiler], true), Some(1));
    }

    #[test]
    fn steps_wait_for_the_build_they_need() {
        assert!(!may_start(Needs::Build, &[], true));
        assert!(!may_start(Needs::Cores, &[], true));
    }

    #[test]
    fn tail_of_a_failed_steps_output_is_repeated() {
        let lines: Vec<String> = (1..=MAX_LINES_AGAIN + 5).map(|number| format!("line {number}\n")).collect();
        let output = lines.concat();
        let shown = last_lines(output.as_bytes());
        assert!(shown.starts_with("line 6\n"), "{shown}");
        assert!(shown.ends_with("line 45"), "{shown}");
        assert_eq!(last_lines(b"one line"), "one line");
    }

    #[test]
    fn processor_time_is_parsed_from_step_output() {
        let output = format!("passed\n    {} 12.5 s\n", super::super::PROCESSOR);
        assert!((processor_seconds(output.as_bytes()) - 12.5).abs() < f64::EPSILON);
        assert!(processor_seconds(b"nothing").is_nan());
    }
}
