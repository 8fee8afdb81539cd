//! Any bytes get a verdict: no panic, no exhausted stack, no quadratic time.

use std::time::{Duration, Instant};

use gatewright_report::{MAX_BYTES, Outcome, validate};
use proptest::prelude::*;

use crate::vectors;

/// What holds for every outcome.
fn assert_sound(document: &[u8], outcome: &Outcome) {
    let places = |findings: &[gatewright_report::Violation]| {
        findings.iter().map(|finding| (finding.line, finding.column)).collect::<Vec<_>>()
    };
    for findings in [&outcome.violations, &outcome.advisories] {
        let places = places(findings);
        assert!(places.is_sorted(), "findings are in document order: {places:?}");
        assert!(places.iter().all(|place| place.0 >= 1 && place.1 >= 1));
    }
    assert_eq!(outcome.valid, outcome.violations.is_empty());
    assert_eq!(outcome.report.is_some(), outcome.valid);
    let text = outcome.to_text("report.json", document, false);
    assert!(!text.chars().any(|shown| shown.is_control() && shown != '\n'), "{text:?}");
    assert_eq!(
        text.lines().count(),
        3 * (outcome.violations.len() + outcome.advisories.len()),
        "three lines for each finding: {text}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_bytes_get_a_verdict(document in prop::collection::vec(any::<u8>(), 0..256)) {
        let outcome = validate(&document);
        prop_assert!(!outcome.valid);
        assert_sound(&document, &outcome);
    }

    #[test]
    fn arbitrary_json_like_text_gets_a_verdict(document in r#"[\[\]{}":,0-9eE+.\\u/a-f\-\n\r\t ntrslé😀]{0,128}"#) {
        let outcome = validate(document.as_bytes());
        // Any parser accepts what our reader accepts; our reader may reject more.
        let parsed = serde_json::from_slice::<serde_json::Value>(document.as_bytes()).is_ok();
        let read = outcome.violations.iter().all(|violation| {
            !["syntax", "empty", "encoding", "number", "duplicate_key", "depth", "trailing"].contains(&violation.rule)
        });
        prop_assert!(parsed || !read, "{document:?}");
        assert_sound(document.as_bytes(), &outcome);
    }

    #[test]
    fn mutated_vectors_get_a_verdict(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        static CASES: std::sync::LazyLock<Vec<Vec<u8>>> =
            std::sync::LazyLock::new(|| vectors::cases().into_iter().map(|case| case.document).collect());
        let mut document = which.get(CASES.as_slice()).clone();
        if !document.is_empty() {
            let at = at.index(document.len());
            if cut { document.truncate(at) } else { document[at] = byte }
        }
        assert_sound(&document, &validate(&document));
    }

    /// 2.12: date and address strings are checked without a panic, wherever their bytes are cut.
    #[test]
    fn arbitrary_strings_in_formats_get_a_verdict(date in r"[0-9TtZz:+\-. é]{0,30}", uri in r"[a-z:/@\[\]%?#.0-9é]{0,30}") {
        let base = std::fs::read_to_string("../tests/vectors/report/bases/minimal.json").expect("readable");
        let document = base
            .replace("2026-01-31T12:00:00Z", &date)
            .replace("https://gateway.example.com", &uri);
        assert_sound(document.as_bytes(), &validate(document.as_bytes()));
    }
}

/// Hostile documents of several megabytes, each of a kind that makes a careless validator quadratic.
#[test]
fn large_hostile_documents_take_linear_time() {
    let size = 200_000;
    let list = |item: &str| vec![item; size].join(",");
    let members: Vec<String> = (0..size).map(|index| format!("\"{index}\":0")).collect();
    let documents = [
        ("many values of the wrong type", format!("{{\"checks\":[{}]}}", list("0"))),
        ("many unknown properties", format!("{{{}}}", members.join(","))),
        ("one name many times", format!("{{{}}}", list("\"a\":0"))),
        ("many equal items", format!("{{\"configuration\":{{\"models\":[{}]}}}}", list("0"))),
        ("many lone surrogates", format!("[{}]", list("\"\\ud800\""))),
        ("one long string", format!("\"{}\"", "a".repeat(4 * size))),
        ("one long number", "1".repeat(4 * size)),
        ("many lines", format!("{{\"checks\":[{}]}}", list("\n0"))),
        ("deep nesting", "[".repeat(4 * size)),
    ];
    for (kind, document) in documents {
        let started = Instant::now();
        let outcome = validate(document.as_bytes());
        assert!(!outcome.valid, "{kind}");
        // Generous for an unoptimized build on a busy machine; quadratic time would be minutes.
        assert!(started.elapsed() < Duration::from_secs(20), "{kind} took {:?}", started.elapsed());
    }
}

#[test]
fn documents_over_the_default_limit_are_rejected_unread() {
    let document = vec![b' '; MAX_BYTES + 1];
    let outcome = validate(&document);
    assert_eq!(outcome.violations.len(), 1);
    assert_eq!(outcome.violations[0].rule, "size");
}
