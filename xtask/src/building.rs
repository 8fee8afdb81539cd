//! Progress of long cargo calls: which crates are built, how many are left, and for how long.
//!
//! cargo prints a progress line only on terminals, and tools that call cargo hide it. This module requests that line,
//! reads it, and shows a bar on a terminal and an occasional line elsewhere.

use std::io::{IsTerminal as _, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};

use crate::process::{missing, shown};

/// Interval between two lines if the output is not a terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(20);

/// Wide enough for the names of all crates being built; the bar truncates them to the terminal.
const WIDTH: &str = "160";

/// Lines of cargo about each crate, which the bar replaces.
const STEPS: [&str; 5] = ["Compiling ", "Checking ", "Documenting ", "Finished ", "Fresh "];

/// Runs cargo, or a tool that calls it, and shows what it builds. All other output is printed as it arrives.
pub(crate) fn build(command: &mut Command) -> Result<()> {
    let watched = std::io::stderr().is_terminal();
    let mut child = command
        .env("CARGO_TERM_PROGRESS_WHEN", "always")
        .env("CARGO_TERM_PROGRESS_WIDTH", WIDTH)
        .env("CARGO_TERM_COLOR", if watched { "always" } else { "never" })
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| missing(command))?;
    let mut progress = BuildProgress::new(watched);
    for_each_line(child.stderr.take().context("a piped output")?, |line| progress.take(line))?;
    let status = child.wait()?;
    let compiled = progress.end();
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    if compiled > 0 {
        eprintln!("    {compiled} crates compiled");
    }
    Ok(())
}

/// The progress of a build, and its display.
struct BuildProgress {
    bar: ProgressBar,
    watched: bool,
    started: Instant,
    last_line: Instant,
    compiled: usize,
}

impl BuildProgress {
    fn new(watched: bool) -> Self {
        let bar = if watched { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("    [{bar:30}] {pos} of {len} crates, {elapsed}: {msg}");
        bar.set_style(style.expect("the template is sound"));
        let now = Instant::now();
        Self { bar, watched, started: now, last_line: now, compiled: 0 }
    }

    fn take(&mut self, line: &str) {
        let plain = without_colours(line);
        if let Some(progress) = Progress::read(&plain) {
            self.show(&progress);
        } else if STEPS.iter().any(|step| plain.trim_start().starts_with(step)) {
            self.compiled += usize::from(plain.trim_start().starts_with("Compiling "));
        } else if !plain.trim().is_empty() {
            self.bar.suspend(|| eprintln!("{line}"));
        }
    }

    fn show(&mut self, progress: &Progress<'_>) {
        if self.bar.length() == Some(0) && self.watched {
            // The time keeps advancing while one crate takes long.
            self.bar.enable_steady_tick(Duration::from_secs(1));
        }
        self.bar.set_length(progress.total);
        self.bar.set_position(progress.done);
        self.bar.set_message(progress.now.to_owned());
        if !self.watched && self.last_line.elapsed() >= BETWEEN_LINES {
            self.last_line = Instant::now();
            let Progress { done, total, now } = progress;
            eprintln!("    {done} of {total} crates, {} s: {now}", self.started.elapsed().as_secs());
        }
    }

    fn end(self) -> usize {
        self.bar.finish_and_clear();
        self.compiled
    }
}

/// cargo's line `Building [===>   ] 12/341: serde, syn(build)`.
#[derive(Debug, PartialEq)]
struct Progress<'a> {
    done: u64,
    total: u64,
    now: &'a str,
}

impl<'a> Progress<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (_, rest) = line.trim().strip_prefix("Building [")?.split_once("] ")?;
        let (counts, now) = rest.split_once(": ").unwrap_or((rest, ""));
        let (done, total) = counts.trim_end_matches(':').split_once('/')?;
        Some(Self { done: done.parse().ok()?, total: total.parse().ok()?, now })
    }
}

/// A line ends at a line feed, or at a carriage return, after which the terminal overwrites it.
fn for_each_line(mut output: impl Read, mut take: impl FnMut(&str)) -> Result<()> {
    let (mut packet, mut held) = (vec![0; 16 << 10], Vec::new());
    loop {
        let length = output.read(&mut packet)?;
        if length == 0 {
            take(&String::from_utf8_lossy(&held));
            return Ok(());
        }
        for byte in &packet[..length] {
            if matches!(byte, b'\n' | b'\r') {
                take(&String::from_utf8_lossy(&held));
                held.clear();
            } else {
                held.push(*byte);
            }
        }
    }
}

/// The line without its escape sequences, `ESC [ … letter`.
fn without_colours(line: &str) -> String {
    let mut pieces = line.split("\x1b[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain += piece.split_once(|letter: char| letter.is_ascii_alphabetic()).map_or("", |(_, after)| after);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_only_from_cargos_progress_line() {
        let line = "    Building [=========================> ] 93/94: xtask(bin), syn              ";
        assert_eq!(Progress::read(line), Some(Progress { done: 93, total: 94, now: "xtask(bin), syn" }));
        assert_eq!(Progress::read("    Building [>  ] 0/7: "), Some(Progress { done: 0, total: 7, now: "" }));
        for other in ["   Compiling syn v3.0.9", "warning: Building [x] 1/2: y", "    Building [==", ""] {
            assert_eq!(Progress::read(other), None, "{other}");
        }
    }

    #[test]
    fn lines_end_at_lf_cr_or_end_of_input() {
        let mut lines = Vec::new();
        for_each_line(&b"a\rb\r\nc"[..], |line| lines.push(line.to_owned())).expect("bytes can be read");
        assert_eq!(lines, ["a", "b", "", "c"]);
    }

    #[test]
    fn colors_are_removed() {
        assert_eq!(without_colours("\x1b[1m\x1b[92m   Compiling\x1b[0m syn\x1b[K"), "   Compiling syn");
    }
}
