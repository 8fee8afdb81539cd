//! What a process uses of the machine (Linux).

use std::fs;

use anyhow::{Context as _, Result};

/// CPU time that the threads of a process have used, in microseconds.
pub fn cpu_us(pid: u32) -> Result<f64> {
    let mut nanoseconds = 0.0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end meanwhile.
        let Ok(stat) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        let running: f64 = stat.split_whitespace().next().context("no time of a thread")?.parse()?;
        nanoseconds += running;
    }
    Ok(nanoseconds / 1000.0)
}

/// Resident memory of a process, in bytes.
pub fn memory(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes: u64 =
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).context("no VmRSS")?;
    Ok(kibibytes * 1024)
}
