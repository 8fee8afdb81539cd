//! Validates compatibility reports. Usage: report_validate [FILE…]

#![expect(clippy::print_stdout, reason = "an example prints")]

fn main() -> std::io::Result<()> {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        let reports = concat!(env!("CARGO_MANIFEST_DIR"), "/../reports");
        files = ["good", "broken"].map(|name| format!("{reports}/{name}.json")).to_vec();
    }
    for file in files {
        let outcome = gatewright::report::validate(&std::fs::read(&file)?);
        println!("{file}: {}", if outcome.valid { "valid" } else { "invalid" });
        for violation in &outcome.violations {
            println!("  {}:{} {}", violation.line, violation.column, violation.message);
        }
    }
    Ok(())
}
