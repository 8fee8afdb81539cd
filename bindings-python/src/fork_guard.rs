//! The id of this process. The system is queried at each call and each stream, and in a child that Python has forked. In
//! between, as for each event, the last result is used.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// 0 before the first query.
static ID: AtomicU32 = AtomicU32::new(0);

/// The id of this process.
pub(crate) fn id() -> u32 {
    match ID.load(Ordering::Relaxed) {
        0 => ask(),
        known => known,
    }
}

/// The same, from the system: a child that Python doesn't know about has a different id, too.
pub(crate) fn ask() -> u32 {
    let id = process::id();
    ID.store(id, Ordering::Relaxed);
    id
}

/// Makes Python call back in every child that it forks.
pub(crate) fn watch_forks(py: Python<'_>) -> PyResult<()> {
    ask();
    // On systems without fork, this function doesn't exist.
    if let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? {
        let keywords = PyDict::new(py);
        keywords.set_item("after_in_child", wrap_pyfunction!(forked, py)?)?;
        register.call((), Some(&keywords))?;
    }
    Ok(())
}

#[pyfunction]
fn forked() {
    ask();
}
