//! `gatewright report`.

mod additional;
mod formats;
mod validate;

use std::path::PathBuf;

/// The file of `tests/vectors/report/bases/<name>.json`.
fn base(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/vectors/report/bases")
        .join(name)
        .with_extension("json")
}

fn minimal() -> String {
    std::fs::read_to_string(base("minimal")).expect("the smallest report is there")
}
