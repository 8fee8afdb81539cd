//! The benchmarked programs: how each is called, and its results.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::documents::{Documents, schema};
use super::figures::Figure;
use super::installs::{OurPackages, Registry};
use super::program::Program;
use super::rows::Contender;
use crate::process::{command, output, root, shown};

/// What programs are measured against.
pub(super) struct Setting {
    /// Where the stub listens.
    pub(super) host: String,
    pub(super) documents: Documents,
    /// The folder of this checkout's programs, for those that are not ours.
    pub(super) here: PathBuf,
}

/// Runs one measurement.
pub(super) fn measure(way: &Contender, ours: &OurPackages, setting: &Setting, count: u32) -> Result<Figure> {
    match way.program {
        Program::Lines(judge) => lines(judge, ours, setting, count),
        Program::PythonStart | Program::NodeStart => start(way, ours, count),
        _ => Figure::read(&output(&mut called(way, ours, setting, count)?)?),
    }
}

/// The command that performs this many operations.
pub(super) fn called(way: &Contender, ours: &OurPackages, setting: &Setting, count: u32) -> Result<Command> {
    let mut call = program(way, ours, setting);
    let (work, subject) = way.task.split_once(' ').context("a task has two words")?;
    call.arg(work);
    if let Some(document) = setting.documents.of(subject) {
        call.arg(document).arg(count.to_string()).arg(schema());
    } else {
        call.args([subject, &count.to_string(), &setting.host]);
    }
    Ok(call)
}

fn program(way: &Contender, ours: &OurPackages, setting: &Setting) -> Command {
    let script = |name: &str| root().join("bench/python").join(format!("{name}.py"));
    match way.program {
        Program::Rust(name) if way.is_ours() => command(ours.program(name)),
        Program::Rust(name) => command(setting.here.join(name)),
        Program::AsyncOpenai => command(Registry::Rust.folder().join("release/gatewright-bench-peers")),
        Program::Python(name) => python(Registry::Python, ours, &script(name)),
        Program::LiteLlm => {
            let mut litellm = python(Registry::LiteLlm, ours, &script("litellm_sdk"));
            // Otherwise it fetches prices from the network first.
            litellm.env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
            litellm
        }
        Program::PythonStart => python(Registry::Python, ours, &script("start")),
        Program::Node(name) => node(way, ours, name),
        Program::NodeStart => node(way, ours, "start"),
        Program::Lines(_) => unreachable!("measured from outside"),
    }
}

fn python(registry: Registry, ours: &OurPackages, script: &Path) -> Command {
    let mut python = command(registry.folder().join("bin/python"));
    python.env("PYTHONPATH", ours.python()).env("PYTHONWARNINGS", "ignore").arg(script);
    python
}

fn node(way: &Contender, ours: &OurPackages, script: &str) -> Command {
    let folder = if way.is_ours() { ours.node() } else { Registry::Node.folder() };
    let mut node = command("node");
    node.arg(folder.join(format!("{script}.mjs"))).env_remove("NODE_OPTIONS");
    node
}

/// The median of this many starts.
fn start(way: &Contender, ours: &OurPackages, count: u32) -> Result<Figure> {
    let mut figures = Vec::new();
    for _ in 0..count.max(1) {
        let mut call = match way.program {
            Program::NodeStart => node(way, ours, "start"),
            _ => python(Registry::Python, ours, &root().join("bench/python/start.py")),
        };
        let started = Instant::now();
        let printed = output(call.arg(way.task))?;
        let wall_us = started.elapsed().as_secs_f64() * 1e6;
        figures.push(Figure { wall_us, ..Figure::read(&printed)? });
    }
    figures.sort_by(|one, other| one.cpu_us.total_cmp(&other.cpu_us));
    Ok(figures[figures.len() / 2])
}

/// How often the memory of a running program is sampled.
const GLANCE: Duration = Duration::from_millis(5);

/// Validates this many NDJSON reports; for ajv-cli, one file each.
fn lines(judge: &str, ours: &OurPackages, setting: &Setting, count: u32) -> Result<Figure> {
    let documents = &setting.documents;
    let mut call = match judge {
        "jsonschema-rs" => {
            let mut script = python(Registry::Python, ours, &root().join("bench/python/lines.py"));
            script.arg(documents.lines(count)?).arg(schema());
            script
        }
        "ajv-cli" => {
            let mut ajv = command(Registry::Node.folder().join("node_modules/.bin/ajv"));
            ajv.current_dir(Registry::Node.folder()).args([
                "validate",
                "--spec=draft2020",
                "--strict=false",
                "-c",
            ]);
            ajv.arg("ajv-formats").arg("-s").arg(schema()).arg("-d").arg(documents.files(count)?);
            ajv
        }
        _ => {
            let program = ours.packaged("gatewright");
            let one_core = judge.ends_with("one core");
            let mut validate = if one_core { command("taskset") } else { command(&program) };
            if one_core {
                validate.args(["-c", "0"]).arg(&program);
            }
            validate.args(["report", "validate", "--format", "json"]).arg(documents.lines(count)?);
            validate
        }
    };
    let verdicts = documents.verdicts();
    call.stdin(Stdio::null()).stdout(File::create(&verdicts)?);
    let ticks = ticks_of_children()?;
    let started = Instant::now();
    let mut child = call.spawn().with_context(|| format!("cannot start {}", shown(&call)))?;
    let mut peak_kb = 0;
    let status = loop {
        peak_kb = peak_kb.max(peak_kilobytes(child.id()));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(GLANCE);
    };
    let wall_us = started.elapsed().as_secs_f64() * 1e6;
    ensure!(status.success(), "{} ended with {status}", shown(&call));
    let valid = Documents::count_valid(&verdicts)?;
    if valid != u64::from(count) {
        bail!("{judge} found {valid} of {count} reports valid");
    }
    let each = f64::from(count);
    Ok(Figure {
        cpu_us: (ticks_of_children()? - ticks) * TICK_US / each,
        wall_us: wall_us / each,
        peak_mib: f64::from(peak_kb) / 1024.0,
        bytes: documents.line_bytes(),
        answer: 1,
    })
}

/// Linux reports the time of ended children in hundredths of a second.
const TICK_US: f64 = 10_000.0;

/// Processor time of ended children, in ticks.
fn ticks_of_children() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The program's name, in parentheses, may contain spaces.
    let (_, rest) = stat.rsplit_once(')').context("no name in /proc/self/stat")?;
    let numbers: Vec<f64> = rest.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    match numbers.get(12..14) {
        Some([user, system]) => Ok(user + system),
        _ => bail!("no times in /proc/self/stat"),
    }
}

/// Peak resident memory so far; 0 for a process that has ended.
fn peak_kilobytes(pid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
