//! The reports that tests start from.

use std::path::Path;

use gatewright_report::{Report, Validator};

/// The text of `tests/vectors/report/bases/<name>.json`.
pub(crate) fn text(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/report/bases");
    std::fs::read_to_string(folder.join(name).with_extension("json")).expect("the base is there")
}

pub(crate) fn report(name: &str) -> Report {
    Validator::default().read(text(name).as_bytes()).expect("the base is valid")
}

/// The full report with `from` replaced by `to` once, still valid.
pub(crate) fn full_with(from: &str, to: &str) -> Report {
    let text = text("full");
    assert!(text.contains(from), "{from}");
    Validator::default().read(text.replacen(from, to, 1).as_bytes()).expect("valid with the change")
}
