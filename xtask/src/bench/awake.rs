//! Keeps cores awake during measurements.

use std::process::{Child, Stdio};

use anyhow::{Context as _, Result};

use crate::process::{command, missing};

/// How long a core is kept awake at most, even if no process is left to end it.
const LONGEST: &str = "3600";

/// A low-priority process on each core. They end when this is dropped.
pub(super) struct Awake(Vec<Child>);

pub(super) fn keep_awake() -> Result<Awake> {
    let cores = std::thread::available_parallelism()?.get();
    let mut awake = Awake(Vec::new());
    for _ in 0..cores {
        let mut spin = command("timeout");
        spin.args([LONGEST, "chrt", "--idle", "0", "sh", "-c", "while :; do :; done"]);
        spin.stdin(Stdio::null());
        awake.0.push(spin.spawn().with_context(|| missing(&spin))?);
    }
    Ok(awake)
}

impl Drop for Awake {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // `timeout` forwards SIGTERM; SIGKILL would orphan its child.
            let _ = command("kill").arg(child.id().to_string()).status();
            let _ = child.wait();
        }
    }
}
