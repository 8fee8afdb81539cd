//! Writes docs/benchmarks.md, between the markers of a subject, and its picture.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result};

use super::measured::Measured;
use super::{Subject, picture, table};
use crate::process::{command, output, root};

/// Writes the results of one subject.
pub(super) fn write(subject: Subject, rows: &[Measured<'_>], rounds: usize) -> Result<()> {
    let name = subject.name();
    let picture = format!("pictures/bench-{name}.svg");
    fs::write(root().join("docs").join(&picture), picture::draw(rows))?;
    let note = format!("Medians of {rounds} rounds; the spread is half of the range from lowest to highest.");
    let run = format!("{name} --rounds {rounds} --write");
    let mut text = format!("{}\n\n![{name}]({picture})\n\n", circumstances(&run, &note)?);
    text.push_str("| what | ours | target | measured | |\n|---|---|---|---|---|\n");
    for row in rows {
        let ours = row.of("ours").map_or_else(String::new, |ours| table::microseconds(ours.cpu_us()));
        for found in table::verdicts(row) {
            let _ = writeln!(
                text,
                "| {} | {ours} | {} | {} | {} |",
                row.row.title,
                found.target,
                found.found,
                found.verdict()
            );
        }
    }
    for row in rows {
        let of_row = table::of_row(row);
        // The targets are in the table above.
        let (ways, _) = of_row.split_once("\n\n").unwrap_or((&of_row, ""));
        let _ = write!(text, "\n{}\n", ways.trim_end());
    }
    put(name, &text)
}

/// Writes the instruction counts of one subject. `tables`: a table for each row.
pub(super) fn write_counts(subject: Subject, tables: &str) -> Result<()> {
    let run = format!("{} --callgrind --write", subject.name());
    let text = format!("{}\n{tables}", circumstances(&run, "One run; process startup is subtracted.")?);
    put(&format!("{} instructions", subject.name()), &text)
}

fn put(name: &str, text: &str) -> Result<()> {
    let path = root().join("docs/benchmarks.md");
    let page = replace(&fs::read_to_string(&path)?, name, text)?;
    Ok(fs::write(path, page)?)
}

/// Date, commit, machine and versions. `run`: continues the command's name.
fn circumstances(run: &str, note: &str) -> Result<String> {
    let line = |program: &str, arguments: &[&str]| -> Result<String> {
        Ok(output(command(program).args(arguments))?.trim().to_owned())
    };
    let date = line("date", &["+%-d %B %Y"])?;
    let commit = line("git", &["rev-parse", "--short=9", "HEAD"])?;
    // The tables and pictures of other subjects from the same run don't affect the measurements.
    let status = line("git", &["status", "--porcelain", "--", ".", ":!docs"])?;
    let changed = if status.is_empty() { "" } else { ", with local changes" };
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown CPU", |(_, model)| model.trim());
    let cores = std::thread::available_parallelism()?;
    let system = line("uname", &["-sr"])?;
    let versions = [line("rustc", &["--version"])?, line("python3", &["--version"])?, {
        format!("Node {}", line("node", &["--version"])?)
    }];
    Ok(format!(
        "`cargo xtask bench {run}`, {date}, commit {commit}{changed}; {model}, {cores} cores, {system}; {}; peers: {}. {note}",
        versions.join(", "),
        peers()?
    ))
}

/// Names and versions of the pinned peers.
fn peers() -> Result<String> {
    let folder = root().join("bench/peers");
    let mut named = Vec::new();
    let pinned = fs::read_to_string(folder.join("requirements.txt"))?;
    let litellm = fs::read_to_string(folder.join("requirements-litellm.txt"))?;
    let is_named = |line: &&str| PYTHON.iter().any(|name| line.starts_with(&format!("{name}==")));
    named.extend(pinned.lines().filter(is_named).map(|line| line.replace("==", " ")));
    named.extend(
        litellm.lines().filter(|line| line.starts_with("litellm==")).map(|line| line.replace("==", " ")),
    );
    let package: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("package.json"))?)?;
    let packages = package["dependencies"].as_object().context("package.json has dependencies")?;
    named.extend(
        packages.iter().map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or_default())),
    );
    let lock = fs::read_to_string(folder.join("Cargo.lock"))?;
    let (_, after) = lock.split_once("name = \"async-openai\"\nversion = \"").context("no async-openai")?;
    named.push(format!("async-openai {}", after.split('"').next().unwrap_or_default()));
    Ok(named.join(", "))
}

const PYTHON: [&str; 5] = ["openai", "httpx", "orjson", "fastjsonschema", "jsonschema_rs"];

/// The page with the text between a subject's markers replaced.
fn replace(page: &str, name: &str, text: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- bench {name} -->\n"), format!("<!-- /bench {name} -->\n"));
    let missing = || format!("docs/benchmarks.md has no markers for {name}");
    let (before, rest) = page.split_once(&begin).with_context(missing)?;
    let (_, after) = rest.split_once(&end).with_context(missing)?;
    Ok([before, &begin, "\n", text.trim_end(), "\n\n", &end, after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_between_the_markers_changes() {
        let page = "a\n<!-- bench x -->\nold\n<!-- /bench x -->\nb\n";
        let new = replace(page, "x", "new").expect("markers");
        assert_eq!(new, "a\n<!-- bench x -->\n\nnew\n\n<!-- /bench x -->\nb\n");
        assert_eq!(replace(&new, "x", "new").expect("markers"), new);
        assert!(replace(page, "y", "new").is_err());
    }

    #[test]
    fn page_has_markers_and_every_peer_has_a_version() {
        let page = fs::read_to_string(root().join("docs/benchmarks.md")).expect("the page");
        for subject in [Subject::Client, Subject::Stream, Subject::Validate, Subject::Start] {
            replace(&page, subject.name(), "text").expect("markers");
        }
        for counted in [Subject::Client, Subject::Stream, Subject::Validate] {
            replace(&page, &format!("{} instructions", counted.name()), "text").expect("markers");
        }
        assert_eq!(peers().expect("peers").split(", ").count(), PYTHON.len() + 1 + 6 + 1);
    }
}
