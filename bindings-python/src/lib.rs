//! The native half of the Python package: registration only.

mod asyncio;
mod check;
mod cli;
mod client;
mod error;
mod generated;
mod not_given;
mod record;
mod report;
mod response;
mod runtime;
mod serialize;
mod stream;

use pyo3::prelude::*;
use pyo3::types::PyMapping;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<record::Record>()?;
    // To isinstance() and to match statements a record is a mapping.
    PyMapping::register::<record::Record>(py)?;
    module.add_class::<response::ResponseInfo>()?;
    module.add_class::<not_given::NotGiven>()?;
    module.add_class::<client::NativeClient>()?;
    module.add_class::<stream::NativeStream>()?;
    module.add_class::<asyncio::Pending>()?;
    module.add_class::<check::CheckRun>()?;
    module.add_class::<report::ReportValidator>()?;
    module.add_class::<report::ReportPool>()?;
    module.add_function(wrap_pyfunction!(cli::run_program, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("NOT_GIVEN", not_given::NotGiven::instance(py)?)?;
    Ok(())
}
