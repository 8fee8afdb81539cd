//! The runtime stated in a report.

/// The runtime in a report, unless a binding sets it.
pub(crate) fn runtime_version() -> String {
    concat!("v", env!("CARGO_PKG_RUST_VERSION")).to_owned()
}
