//! The engine of the Python package: registration only.

mod answer;
mod asyncio;
mod callbacks;
mod check;
mod cli;
mod client;
mod document;
mod error;
mod event;
mod file_argument;
mod files;
mod fork_guard;
mod generated;
mod headers;
mod interpreter;
mod not_given;
#[cfg(debug_assertions)]
mod on_purpose;
mod options;
mod raw_event;
mod record;
mod report;
mod report_pool;
mod report_verdict;
mod response;
mod runtime;
mod serialize;
mod stream;
mod values;
mod videos;
mod waiting;
#[cfg(unix)]
mod watch;
mod webhook;

use pyo3::prelude::*;

// A free-threaded Python keeps the GIL enabled with this module: nothing here has been tested without it
// (decision 0062).
#[pymodule(gil_used = true)]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    fork_guard::watch_forks(py)?;
    module.add_class::<record::Record>()?;
    // isinstance() and match statements treat a record as a mapping. `collections.abc` takes this class from here, and
    // imports much else.
    let mapping = py.import("_collections_abc")?.getattr("Mapping")?;
    mapping.call_method1("register", (py.get_type::<record::Record>(),))?;
    module.add_class::<response::ResponseInfo>()?;
    module.add_class::<raw_event::RawEvent>()?;
    module.add_class::<not_given::NotGiven>()?;
    module.add_class::<client::EngineClient>()?;
    module.add_class::<stream::EngineStream>()?;
    module.add_class::<asyncio::Pending>()?;
    module.add_class::<videos::VideoWatch>()?;
    module.add_class::<callbacks::Reply>()?;
    module.add_class::<report::ReportValidator>()?;
    module.add_function(wrap_pyfunction!(files::save, module)?)?;
    module.add_function(wrap_pyfunction!(files::save_async, module)?)?;
    module.add_function(wrap_pyfunction!(webhook::unwrap_webhook, module)?)?;
    module.add_function(wrap_pyfunction!(webhook::read_webhook, module)?)?;
    module.add_class::<check::CheckRun>()?;
    module.add_class::<report_pool::ReportPool>()?;
    module.add_function(wrap_pyfunction!(report::is_blank_line, module)?)?;
    module.add_function(wrap_pyfunction!(cli::run_program, module)?)?;
    module.add_function(wrap_pyfunction!(options::is_secret_name, module)?)?;
    module.add_function(wrap_pyfunction!(options::key_of_round, module)?)?;
    module.add_function(wrap_pyfunction!(client::register_operations, module)?)?;
    module.add_function(wrap_pyfunction!(file_argument::read_files, module)?)?;
    module.add_class::<file_argument::ReadFile>()?;
    module.add_function(wrap_pyfunction!(file_argument::takes_files, module)?)?;
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(interpreter::close, module)?,))?;
    #[cfg(debug_assertions)]
    {
        module.add_function(wrap_pyfunction!(on_purpose::panic_at, module)?)?;
    }
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    let thresholds = gatewright::report::Thresholds::default();
    module.add("SLOWER_PERCENT", thresholds.percent)?;
    module.add("SLOWER_MS", thresholds.ms)?;
    module.add("NOT_GIVEN", not_given::NotGiven::instance(py)?)?;
    Ok(())
}
