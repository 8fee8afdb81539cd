//! How much memory and work a document can cost a reader: findings are bounded in number and size, and output made from reports
//! does not multiply names by rows. Verified by counting allocations, never by the clock.

use allocation_counter::{AllocationInfo, measure};
use gatewright_report::{
    Diff, MAX_FINDINGS, Outcome, Report, Thresholds, Trend, Validator, html, junit, terminal, validate,
};

use crate::{bases, vectors};

const LONG: usize = 100_000;

fn list(item: &str, count: usize) -> String {
    vec![item; count].join(",")
}

/// Documents with `count` findings below, or beside, a name of `length` bytes.
fn hostile(length: usize, count: usize) -> Vec<(&'static str, String)> {
    let name = "n".repeat(length);
    let nested = format!("{{\"{name}\":").repeat(100);
    let closed = "}".repeat(100);
    let repeated: Vec<String> =
        (0..count / 20).map(|index| format!("\"{}{index}\":0", &name[..length / count])).collect();
    vec![
        ("lone surrogates below a long name", format!("{{\"{name}\":[{}]}}", list("\"\\ud800\"", count))),
        ("large integers below a long name", format!("{{\"{name}\":[{}]}}", list("9007199254740993", count))),
        ("numbers out of range below a name of escapes", {
            format!("{{\"{}\":[{}]}}", "\\u0061".repeat(length / 6), list("1e999", count))
        }),
        ("a long name that ends in half an escape", {
            format!("{{\"{}\\ud83d\\ude00\":[{}]}}", "a".repeat(3000), list("NaN", count))
        }),
        ("one name many times below a long one", format!("{{\"{name}\":{{{}}}}}", list("\"a\":0", count))),
        ("a hundred long names, each in the one before", format!("{nested}[{}]{closed}", list("NaN", count))),
        ("long names, each there twice", format!("{{{0},{0}}}", repeated.join(","))),
        ("values of the wrong type", format!("{{\"checks\":[{}]}}", list("0", count))),
        ("empty checks", format!("{{\"checks\":[{}]}}", list("{}", count))),
        ("unknown models", format!("{{\"configuration\":{{\"models\":[{}]}}}}", list("0", count))),
    ]
}

fn judged(validator: &Validator, document: &str) -> (Outcome, AllocationInfo) {
    let mut outcome = None;
    let counted = measure(|| outcome = Some(validator.check(document.as_bytes())));
    (outcome.expect("it was judged"), counted)
}

/// 2.12: the memory of a validation grows with the document, not with a name's length times the findings below it.
#[test]
fn findings_below_long_names_use_no_more_memory_than_the_document_and_a_bounded_list() {
    let validator = Validator::default();
    // A tree of the smallest values is about thirty times as large as their text.
    let bound = |document: &str| 64 * document.len() as u64 + 4096 * 2 * MAX_FINDINGS as u64;
    for (kind, document) in hostile(LONG, LONG / 20) {
        let (outcome, counted) = judged(&validator, &document);
        assert!(!outcome.valid, "{kind}");
        assert!(
            counted.bytes_max < bound(&document),
            "{kind}: {} bytes were held for a document of {}",
            counted.bytes_max,
            document.len()
        );
    }
}

/// 2.12: the work, in bytes allocated, grows linearly with the document.
#[test]
fn ten_times_the_findings_and_names_cost_ten_times_the_work() {
    let validator = Validator::default();
    for ((kind, small), (_, large)) in hostile(4_000, 2_000).into_iter().zip(hostile(40_000, 20_000)) {
        let (small, large) = (judged(&validator, &small).1, judged(&validator, &large).1);
        assert!(
            large.bytes_total < 15 * small.bytes_total,
            "{kind}: {} bytes were allocated in all, and {} for a document of ten times the size",
            small.bytes_total,
            large.bytes_total
        );
    }
}

/// 2.12: the first findings in document order are listed, the rest is counted.
#[test]
fn findings_over_the_limit_are_counted() {
    let document = format!("{{\"checks\":[{}]}}", list("0", 5000));
    let outcome = validate(document.as_bytes());
    assert_eq!((outcome.violations.len(), outcome.more_violations), (MAX_FINDINGS, 4008));
    assert_eq!(outcome.violations[8].pointer, "/checks/0");
    assert_eq!(outcome.violations[MAX_FINDINGS - 1].pointer, "/checks/991");
    let large = list("9007199254740993", 3000);
    let outcome = Validator::builder().max_findings(2).build().check(format!("[{large}]").as_bytes());
    assert_eq!((outcome.violations.len(), outcome.more_violations), (1, 0));
    assert_eq!((outcome.advisories.len(), outcome.more_advisories), (2, 2998));
}

/// However few findings are listed, the verdict and their number stay the same, and the listed ones are the first.
#[test]
fn limit_changes_no_verdict() {
    for case in vectors::cases().iter().filter(|case| case.options.is_empty()) {
        let all = validate(&case.document);
        let few = few().check(&case.document);
        assert_eq!(few.valid, all.valid, "{}", case.name);
        for (few, more, all) in [
            (&few.violations, few.more_violations, &all.violations),
            (&few.advisories, few.more_advisories, &all.advisories),
        ] {
            assert_eq!(few[..], all[..all.len().min(2)], "{}", case.name);
            assert_eq!(few.len() + more, all.len(), "{}", case.name);
        }
    }
}

fn few() -> &'static Validator {
    static FEW: std::sync::LazyLock<Validator> =
        std::sync::LazyLock::new(|| Validator::builder().max_findings(2).build());
    &FEW
}

#[test]
fn every_form_of_a_verdict_reports_the_number_of_unlisted_findings() {
    let document = format!(
        "{{\"checks\":[{},{}]}}",
        list("0", 5),
        list(r#"{"id":"models_endpoint","model":null,"layer":"agent"}"#, 3)
    );
    let outcome = few().check(document.as_bytes()).from_line(7);
    // Eight members are missing at the top, and a status in each of the three objects.
    let words = "not listed: 14 violations, 3 advisories";
    assert_eq!(outcome.more().as_deref(), Some(words));
    assert!(
        outcome
            .to_text("all.ndjson", document.as_bytes(), false)
            .ends_with(&format!("\nall.ndjson: {words}\n"))
    );
    assert!(
        outcome
            .to_annotations("all.ndjson")
            .ends_with(&format!("\n::error file=all.ndjson,line=7::{words}\n"))
    );
    let results: serde_json::Value =
        serde_json::from_str(&format!("[{}]", outcome.to_sarif("all.ndjson"))).expect("JSON");
    let last = results.as_array().and_then(|results| results.last()).expect("a result");
    assert_eq!((&last["message"]["text"], &last["level"]), (&words.into(), &"error".into()));
    assert_eq!(last["locations"][0]["physicalLocation"]["region"]["startLine"], 7);
    let json: serde_json::Value = serde_json::from_str(&outcome.to_json()).expect("JSON");
    assert_eq!((&json["more_violations"], &json["more_advisories"]), (&14.into(), &3.into()));
}

#[test]
fn long_pointers_and_names_are_visibly_truncated() {
    let name = "n".repeat(LONG);
    let outcome = validate(format!("{{\"{name}\":[1e999],\"{name}\":0}}").as_bytes());
    let [number, repeated] = &outcome.violations[..] else { panic!("{:?}", outcome.violations) };
    assert_eq!(number.pointer, format!("/{}…", "n".repeat(255)));
    assert_eq!(repeated.property, Some(format!("{}…", "n".repeat(256))));
    let pointer = format!("/{}", "n".repeat(255));
    let outcome = validate(format!("{{\"{}\":1e999}}", &pointer[1..]).as_bytes());
    assert_eq!(outcome.violations[0].pointer, pointer);
    // A step's own escapes count as they appear in the pointer.
    let outcome = validate(format!("{{\"{}\":1e999}}", "/~".repeat(200)).as_bytes());
    assert_eq!(outcome.violations[0].pointer.chars().count(), 257);
}

/// A profile may name a thousand models; a message lists some of them.
#[test]
fn messages_list_a_readable_number_of_models() {
    let models: Vec<String> = (0..1000).map(|index| format!("model-{index}-{}", "m".repeat(500))).collect();
    let validator = Validator::builder().models(&models).build();
    let document = format!("{{\"configuration\":{{\"models\":[{}]}}}}", list("\"other\"", 900));
    let outcome = validator.check(document.as_bytes());
    let unknown =
        outcome.violations.iter().find(|violation| violation.rule == "enum").expect("unknown models");
    assert!(unknown.message.ends_with("… and 984 more"), "{}", unknown.message);
    assert!(outcome.violations.iter().all(|violation| violation.message.len() < 2000));
}

/// A report with this many checks on each of this many models, and an endpoint of `length` bytes.
fn report(models: usize, checks: usize, length: usize) -> Report {
    let mut report: Report = serde_json::from_str(&bases::text("full")).expect("a report");
    report.endpoint = format!("https://{}.example.com", "e".repeat(length));
    report.configuration.models = (0..models).map(|index| format!("model-{index}")).collect();
    let check = report.checks[0].clone();
    let all = report.configuration.models.iter().flat_map(|model| {
        let of_model = gatewright_report::Check { model: Some(model.clone()), ..check.clone() };
        vec![of_model; checks]
    });
    report.checks = all.collect();
    report
}

/// 2.12: the address may have any length, and is written once for each model.
#[test]
fn output_made_from_a_report_repeats_no_long_text() {
    let report = report(500, 1, LONG);
    let diff = Diff::of(&report, &report, Thresholds::default());
    for (form, text) in [
        ("junit", junit(&report)),
        ("terminal", terminal(&report, false)),
        ("html", html(&report, &[])),
        ("diff", diff.to_json()),
        ("page of a diff", diff.to_html()),
    ] {
        assert!(text.len() < 20 * LONG, "{form} has {} bytes", text.len());
    }
}

#[test]
fn trend_stores_little_of_each_report_regardless_of_text_length() {
    let mut report = report(1, 1, LONG);
    report.generated_at = format!("2026-01-31T12:00:00.{}Z", "0".repeat(LONG));
    report.checks[0].model = Some("m".repeat(LONG));
    let mut trend = Trend::default();
    let counted = measure(|| {
        for _ in 0..200 {
            trend.add(&"f".repeat(LONG), &report);
        }
    });
    // Four texts of a thousand characters each, with room to grow, and some numbers.
    assert!(counted.bytes_current < 200 * 10_000, "{} bytes are kept", counted.bytes_current);
    assert!(trend.to_html().len() < 20 * LONG);
}

#[test]
fn page_shows_ten_thousand_checks_and_counts_the_rest() {
    let page = html(&report(1, 10_002, 1), &[]);
    assert!(page.contains("Only the first 10000 checks are shown; 2 are omitted."));
    assert!(page.contains("id=\"cell-9999\"") && !page.contains("id=\"cell-10000\""));
    assert!(!html(&report(1, 3, 1), &[]).contains("omitted"));
}

#[test]
fn canonical_form_is_rejected_if_indentation_would_multiply_its_size() {
    let validator = Validator::builder().max_bytes(10_000).build();
    let deep = format!("{}{}{}", "[".repeat(120), list("0", 2_000), "]".repeat(120));
    let refused = validator.canonical(deep.as_bytes()).expect_err("too long");
    assert_eq!(
        refused.violations[0].message,
        "the canonical form is too long: too deep, with too much in it"
    );
    let counted = measure(|| drop(validator.canonical(deep.as_bytes())));
    assert!(counted.bytes_max < 40 * 10_000, "{} bytes were held", counted.bytes_max);
    assert!(validator.canonical(bases::text("minimal").as_bytes()).is_ok());
}
