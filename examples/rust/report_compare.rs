//! Compares two reports, and renders the newer one as a page. Usage: report_compare [OLD NEW]

#![expect(clippy::print_stdout, reason = "an example prints")]

use gatewright::report::{Diff, Thresholds, Validator, html, terminal};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let good = concat!(env!("CARGO_MANIFEST_DIR"), "/../reports/good.json").to_owned();
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    files.resize(2, good);
    let mut reports = Vec::new();
    for file in &files {
        let report = Validator::default().read(&std::fs::read(file)?);
        reports.push(report.map_err(|outcome| format!("{file}: {}", outcome.violations[0].message))?);
    }
    print!("{}", terminal(&reports[1], false));
    print!("\n{}", Diff::of(&reports[0], &reports[1], Thresholds::default()).to_text(false));
    std::fs::write("report.html", html(&reports[1], &[]))?;
    Ok(())
}
