//! Report pages in a browser: tests their layout, and takes the pictures of them in docs/pictures.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::artefacts::{npm_ci, program, target};
use crate::local_gateway::LocalGateway;
use crate::other_server::OtherServer;
use crate::process::{command, files_of, root, run};
use crate::terminal_pictures;

/// Replaces the address of the run in the pages, which differs each time.
const ENDPOINT: &str = "https://gateway.example";
/// A gateway with two models that fail a check.
const MODELS: [(&str, &str); 3] = [
    ("model-sol", "model-sol"),
    ("model-terra", "model-terra~no_terminal"),
    ("model-luna", "model-luna~bad_tool_call"),
];

/// Opens every kind of page at three widths, light and dark, and on paper.
pub(crate) fn test_pages() -> Result<()> {
    check_pictures()?;
    terminal_pictures::check()?;
    npm_ci(&tests())?;
    let folder = make(Times::Settled)?;
    run(command("node")
        .current_dir(tests())
        .args(["--test", "pages.test.mjs"])
        .env("GATEWRIGHT_PAGES", folder))
}

/// Writes docs/pictures.
pub(crate) fn take_pictures() -> Result<()> {
    npm_ci(&tests())?;
    let folder = make(Times::Taken)?;
    let other = OtherServer::start("server.mjs", &MODELS.map(|(id, _)| id))?;
    checked(&folder, "other-server", &other.address, "any-key", Times::Taken)?;
    terminal_pictures::take()?;
    run(command("node").arg(tests().join("pictures.mjs")).arg(folder).arg(root().join("docs/pictures")))?;
    Ok(std::fs::write(root().join(TAKEN_OF), format!("{}\n", digest(&sources()?)?))?)
}

/// The digest of the sources of the report pictures, from when they were taken. Dates can't tell: a checkout has none.
const TAKEN_OF: &str = "docs/pictures/reports.sha256";

/// Errors: the code that generates the pages, or takes the pictures, has changed since.
fn check_pictures() -> Result<()> {
    let taken = std::fs::read_to_string(root().join(TAKEN_OF)).unwrap_or_default();
    if taken.trim_end() != digest(&sources()?)? {
        bail!("the pictures of reports are older than report/src/page; run cargo xtask pictures");
    }
    Ok(())
}

/// What determines the look of the pictures, besides the reports they show.
fn sources() -> Result<Vec<PathBuf>> {
    let mut files = page_sources()?;
    files.push(tests().join("pictures.mjs"));
    files.sort();
    Ok(files)
}

/// What determines the look of a page, besides the report it shows.
pub(crate) fn page_sources() -> Result<Vec<PathBuf>> {
    let pages = root().join("report/src/page");
    let mut files = vec![root().join("report/src/page.rs")];
    for extension in ["rs", "css"] {
        files.extend(files_of(&pages, extension)?);
    }
    Ok(files)
}

/// A digest of the names and contents of files.
pub(crate) fn digest(files: &[PathBuf]) -> Result<String> {
    let mut sum = Sha256::new();
    for file in files {
        let content = std::fs::read(file)?;
        let name = file.strip_prefix(root()).unwrap_or(file);
        sum.update(format!("{} {}\n", name.display(), content.len()));
        sum.update(content);
    }
    Ok(format!("{:x}", sum.finalize()))
}

fn tests() -> PathBuf {
    root().join("tests/pages")
}

/// Which times the reports contain.
#[derive(Clone, Copy)]
enum Times {
    /// Those of this run.
    Taken,
    /// The same in each run, so that its pages look the same.
    Settled,
}

/// Generates a page of each kind. Returns their folder.
fn make(times: Times) -> Result<PathBuf> {
    let folder = target().join("pages");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(folder.join("runs"))?;
    let simulator = LocalGateway::start()?;
    let passes = checked(&folder, "passes", simulator.address(), simulator.key(), times)?;
    let failing = LocalGateway::start_with(&["--config", &configuration(&folder, &simulator)?])?;
    let faults = checked(&folder, "faults", failing.address(), failing.key(), times)?;
    report(
        &folder,
        &["diff", "passes.json", "faults.json", "--format", "html", "--fail-on", "never"],
        "diff",
    )?;
    for day in 1..=12 {
        let mut one = if day % 5 == 0 { faults.clone() } else { passes.clone() };
        one["generated_at"] = Value::from(format!("2026-01-{day:02}T12:00:00Z"));
        std::fs::write(folder.join(format!("runs/{day:02}.json")), one.to_string())?;
    }
    report(&folder, &["trend", "runs"], "trend")?;
    report(&folder, &["trend", "faults.json"], "trend-of-one")?;
    Ok(folder)
}

/// The configuration of a gateway whose models fail in different ways.
fn configuration(folder: &Path, upstream: &LocalGateway) -> Result<String> {
    let key = folder.join("upstream.key");
    std::fs::write(&key, upstream.key())?;
    let mut text = format!(
        "[upstreams.one]\nkind = \"gatewright\"\nbase_url = {:?}\nkey = {{ file = {:?} }}\n",
        upstream.address(),
        key.display().to_string()
    );
    for (id, model) in MODELS {
        _ = writeln!(text, "[models.{id}]\ntargets = [{{ upstream = \"one\", model = {model:?} }}]");
    }
    let path = folder.join("faults.toml");
    std::fs::write(&path, text)?;
    Ok(path.display().to_string())
}

/// Checks a gateway, and generates the report's page. Returns the report.
fn checked(folder: &Path, name: &str, address: &str, key: &str, times: Times) -> Result<Value> {
    let (path, evidence) = (folder.join(name).with_extension("json"), format!("{name}-evidence"));
    let mut check = command(program());
    check.current_dir(folder).args(["check", "--full", "--evidence", &evidence, "--out"]).arg(&path);
    // It exits with 1 if a check fails, as some do here.
    check.args(["--base-url", address]).env("GATEWRIGHT_API_KEY", key);
    let status = check.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    if status.code().is_none_or(|code| code >= 2) {
        bail!("gatewright check ended with {status}");
    }
    let text = std::fs::read_to_string(&path)?.replace(address, ENDPOINT);
    let mut made: Value = serde_json::from_str(&text).context("the report is JSON")?;
    if let Times::Settled = times {
        settle_times(&mut made);
    }
    std::fs::write(&path, made.to_string())?;
    report(folder, &["html", &format!("{name}.json"), "--evidence", &evidence], name)?;
    Ok(made)
}

/// Replaces the times of a report. Each check takes a few milliseconds more than the one before.
fn settle_times(report: &mut Value) {
    report["generated_at"] = Value::from("2026-01-01T12:00:00Z");
    let checks = report["checks"].as_array_mut().into_iter().flatten();
    for (milliseconds, time) in (10..).step_by(5).zip(checks.filter_map(|check| check.get_mut("duration_ms")))
    {
        *time = Value::from(milliseconds);
    }
}

/// Runs `gatewright report`, and writes the page `name`.
fn report(folder: &Path, arguments: &[&str], name: &str) -> Result<()> {
    let mut call: Command = command(program());
    run(call.current_dir(folder).arg("report").args(arguments).arg("--out").arg(format!("{name}.html")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_page_source_changes_the_digest() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("page.rs");
        std::fs::write(&file, "one").expect("it is written");
        let before = digest(std::slice::from_ref(&file)).expect("it is read");
        std::fs::write(&file, "two").expect("it is written");
        assert_ne!(digest(&[file]).expect("it is read"), before);
    }

    #[test]
    fn page_sources_include_code_and_style() {
        let names: Vec<_> =
            sources().expect("files").iter().filter_map(|file| Some(file.file_name()?.to_owned())).collect();
        for name in ["page.rs", "report.rs", "trend.rs", "diff.rs", "style.css", "pictures.mjs"] {
            assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
        }
    }
}
