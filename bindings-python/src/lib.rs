//! The native half of the Python package: registration only.

mod generated;
mod not_given;
mod record;
mod response;
mod serialize;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<record::Record>()?;
    module.add_class::<response::ResponseInfo>()?;
    module.add_class::<not_given::NotGiven>()?;
    module.add("NOT_GIVEN", not_given::NotGiven::instance(py)?)?;
    Ok(())
}
