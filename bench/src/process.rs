//! What a process takes of the machine (Linux).

use std::fs;

use anyhow::{Context as _, Result};

/// Ticks of a second in `/proc`, on every Linux that matters here.
const TICKS: f64 = 100.0;

/// Time of the processor that a process and its threads have taken, in microseconds.
pub fn cpu_us(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold anything.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| -> Result<f64> { Ok(fields.get(at).context("no such field")?.parse()?) };
    Ok((ticks(11)? + ticks(12)?) / TICKS * 1e6)
}

/// Resident memory of a process, in bytes.
pub fn memory(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes: u64 =
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).context("no VmRSS")?;
    Ok(kibibytes * 1024)
}
