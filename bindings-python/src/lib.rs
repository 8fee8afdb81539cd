//! The native half of the Python package: registration only.

mod answer;
mod asyncio;
mod callbacks;
mod check;
mod cli;
mod client;
mod error;
mod files;
mod generated;
mod interpreter;
mod not_given;
mod options;
mod raw_event;
mod record;
mod report;
mod response;
mod runtime;
mod serialize;
mod stream;
mod videos;
mod webhook;

use pyo3::prelude::*;
use pyo3::types::PyMapping;

/// Makes the client panic at a place, for the tests of what becomes of it; nowhere, again, by any other name.
#[cfg(debug_assertions)]
#[pyfunction]
fn panic_at(place: &str) {
    gatewright::on_purpose::panic_at(gatewright::on_purpose::Place::named(place));
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<record::Record>()?;
    // To isinstance() and to match statements a record is a mapping.
    PyMapping::register::<record::Record>(py)?;
    module.add_class::<response::ResponseInfo>()?;
    module.add_class::<raw_event::RawEvent>()?;
    module.add_class::<not_given::NotGiven>()?;
    module.add_class::<client::NativeClient>()?;
    module.add_class::<stream::NativeStream>()?;
    module.add_class::<asyncio::Pending>()?;
    module.add_class::<videos::VideoWatch>()?;
    module.add_class::<callbacks::Reply>()?;
    module.add_class::<report::ReportValidator>()?;
    module.add_function(wrap_pyfunction!(files::save, module)?)?;
    module.add_function(wrap_pyfunction!(files::save_async, module)?)?;
    module.add_function(wrap_pyfunction!(webhook::unwrap_webhook, module)?)?;
    module.add_function(wrap_pyfunction!(webhook::read_webhook, module)?)?;
    module.add_class::<check::CheckRun>()?;
    module.add_class::<report::ReportPool>()?;
    module.add_function(wrap_pyfunction!(cli::run_program, module)?)?;
    module.add_function(wrap_pyfunction!(options::is_secret_name, module)?)?;
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(interpreter::close, module)?,))?;
    #[cfg(debug_assertions)]
    module.add_function(wrap_pyfunction!(panic_at, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    let wait = gatewright::WaitOptions::default();
    module.add("VIDEO_POLL_INTERVAL_S", wait.interval.as_secs_f64())?;
    module.add("VIDEO_WAIT_TIMEOUT_S", wait.timeout.as_secs_f64())?;
    module.add("NOT_GIVEN", not_given::NotGiven::instance(py)?)?;
    Ok(())
}
