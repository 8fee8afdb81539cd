//! The memory of a process over time, and its evaluation.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result};

const MIB: u64 = 1024 * 1024;

/// Resident memory of a child process, in bytes, unless it has ended. Only Linux reports it without a dependency.
pub(crate) fn resident_bytes(process: u32) -> Result<Option<u64>> {
    let path = format!("/proc/{process}/status");
    let status =
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}: soak needs Linux"))?;
    let Some(line) = status.lines().find_map(|line| line.strip_prefix("VmRSS:")) else {
        return Ok(None);
    };
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().context("VmRSS is in kB")?;
    Ok(Some(kib * 1024))
}

/// The samples of one phase of a program.
pub(crate) struct Curve {
    phase: String,
    /// Growth that still counts as flat, in MiB.
    bound_mib: u64,
    began: Duration,
    ended: Duration,
    done: u64,
    /// Resident bytes, in the order they were taken.
    samples: Vec<u64>,
}

impl Curve {
    pub(crate) fn new(phase: &str, bound_mib: u64, began: Duration) -> Self {
        Self { phase: phase.to_owned(), bound_mib, began, ended: began, done: 0, samples: Vec::new() }
    }

    pub(crate) fn phase(&self) -> &str {
        &self.phase
    }

    pub(crate) fn add(&mut self, done: u64, resident: u64, at: Duration) {
        self.done = done;
        self.ended = at;
        self.samples.push(resident);
    }

    /// Growth between the second quarter, when caches and pools are filled, and the last.
    fn growth(&self) -> i64 {
        let quarter = self.samples.len() / 4;
        let after_warm_up = median(&self.samples[quarter..2 * quarter]);
        let at_the_end = median(&self.samples[self.samples.len() - quarter..]);
        at_the_end.cast_signed() - after_warm_up.cast_signed()
    }

    /// Whether the growth is within the bound. Too few samples don't count as flat.
    pub(crate) fn is_flat(&self) -> bool {
        self.samples.len() >= 8 && self.growth() <= (self.bound_mib * MIB).cast_signed()
    }
}

/// One line: amount, duration, curve, first and last sample, verdict.
impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.samples.first().unwrap_or(&0), self.samples.last().unwrap_or(&0));
        write!(
            f,
            "{:<15} {:>9} in {:>5.1} s  {}  {:>5} → {:>5} MiB",
            self.phase,
            self.done,
            self.ended.saturating_sub(self.began).as_secs_f64(),
            sparkline(&self.samples),
            tenths(first.cast_signed()),
            tenths(last.cast_signed()),
        )?;
        let verdict = if self.is_flat() { "flat" } else { "GROWS" };
        if self.samples.len() < 8 {
            return write!(f, "  {verdict}: too few samples");
        }
        write!(f, "  {verdict}: {} MiB after the warm-up, bound {}", tenths(self.growth()), self.bound_mib)
    }
}

/// Bytes as MiB with one decimal place.
fn tenths(bytes: i64) -> String {
    let tenths = bytes * 10 / MIB.cast_signed();
    let sign = if tenths < 0 { "-" } else { "" };
    format!("{sign}{}.{}", tenths.abs() / 10, tenths.abs() % 10)
}

fn median(samples: &[u64]) -> u64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

/// The samples from nothing up to their maximum, so that a flat curve looks flat; 40 columns at most.
fn sparkline(samples: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = samples.iter().max().copied().unwrap_or(0).max(1);
    let every = samples.len().div_ceil(40).max(1);
    samples
        .iter()
        .step_by(every)
        .map(|sample| BARS[usize::try_from(sample * 7 / highest).expect("at most seven")])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(samples: impl IntoIterator<Item = u64>) -> Curve {
        let mut curve = Curve::new("requests", 8, Duration::ZERO);
        for (index, sample) in samples.into_iter().enumerate() {
            curve.add(index as u64, sample * MIB, Duration::from_secs(index as u64));
        }
        curve
    }

    #[test]
    fn warm_up_is_not_growth() {
        assert!(curve([10, 60, 90, 100, 100, 101, 100, 100, 100, 101, 100, 100]).is_flat());
    }

    #[test]
    fn steady_rise_is_growth() {
        let rising = curve(100..140);
        assert!(!rising.is_flat());
        assert!(rising.to_string().ends_with("GROWS: 20.0 MiB after the warm-up, bound 8"), "{rising}");
    }

    #[test]
    fn too_few_samples_are_inconclusive() {
        assert!(!curve([100; 7]).is_flat());
    }

    #[test]
    fn own_memory_is_measured() {
        assert!(resident_bytes(std::process::id()).expect("a status").expect("a running process") > MIB);
    }
}
