//! Cores that do not sleep while something is measured.

use std::process::{Child, Stdio};

use anyhow::{Context as _, Result};

use crate::process::{command, missing};

/// The longest that a core is kept awake, also where nobody is left to end it.
const LONGEST: &str = "3600";

/// A process on each core that runs where nothing else does. They end with this.
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
            // `timeout` passes SIGTERM on; SIGKILL would leave its child alone.
            let _ = command("kill").arg(child.id().to_string()).status();
            let _ = child.wait();
        }
    }
}
