//! Reports: any bytes get a verdict without a panic, every violation has a place inside the document, and the text for
//! people holds nothing that acts on a terminal.

#![no_main]

use gatewright::report;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|document: &[u8]| {
    let outcome = report::validate(document);
    assert_eq!(outcome.valid, outcome.violations.is_empty());
    assert_eq!(outcome.valid, outcome.report.is_some(), "a valid document is read, an invalid one is not");
    // A document ends lines with LF, CR or both, and the place of what is missing may be its very end.
    let lines = document.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() + 1;
    for found in outcome.violations.iter().chain(&outcome.advisories) {
        assert!((1..=lines).contains(&found.line) && found.column >= 1, "{found:?}");
        assert!(found.column <= document.len() + 1, "{found:?}");
    }
    assert!(outcome.violations.len().max(outcome.advisories.len()) <= report::MAX_FINDINGS);
    let text = outcome.to_text("report.json", document, false);
    let acts = |letter: char| letter.is_control() && letter != '\n';
    assert!(!text.contains(acts), "{text:?}");
    let json: serde_json::Value = serde_json::from_str(&outcome.to_json()).expect("an outcome is JSON");
    assert_eq!(json["valid"], outcome.valid);
});
