//! The checker that reads a document once, against the tree and the schema: it accepts only what they find nothing wrong with,
//! and it accepts the usual forms of reports.

mod mutation;
mod oracle;

use gatewright_report::Validator;
use proptest::prelude::*;

use self::mutation::{Choices, written};
use crate::vectors::{cases, validator};

/// Valid vectors without advisories that the checker leaves to the tree.
const LEFT_TO_THE_TREE: &[&str] = &[
    "advisories/no_userinfo_in_query",
    "advisories/no_userinfo_in_mailto",
    "numbers/integer_with_exponent_accepted",
    "numbers/integer_with_upper_case_exponent_accepted",
    "numbers/integer_with_fraction_and_exponent_accepted",
    "numbers/integer_with_negative_exponent_accepted",
    "numbers/minimum_holds_for_exponents",
    "numbers/constant_0_zero_exponent_accepted",
    "numbers/count_zero_exponent_accepted",
    "numbers/constant_0_zero_negative_exponent_accepted",
    "numbers/count_zero_negative_exponent_accepted",
    "numbers/integer_2_to_the_53_minus_1_accepted",
    "reader/escaped_names_accepted",
    "top_level/generated_at_lower_case_accepted",
    "top_level/generated_at_leap_second_accepted",
    "top_level/generated_at_leap_second_with_offset_accepted",
    "top_level/endpoint_ipv6_accepted",
    "top_level/endpoint_query_accepted",
    "top_level/endpoint_percent_accepted",
    "top_level/endpoint_fragment_accepted",
    "top_level/endpoint_urn_accepted",
];

/// Whether the checker is sure. If so, the tree must agree, and produce the same report.
fn agreed(validator: &Validator, document: &[u8]) -> bool {
    let sure = validator.is_surely_sound(document);
    if sure {
        let (fast, slow) = (validator.validate(document), validator.validate_by_tree(document));
        let shown = || String::from_utf8_lossy(document).into_owned();
        assert_eq!(fast.to_json(), slow.to_json(), "{}", shown());
        assert_eq!(fast.report, slow.report, "{}", shown());
        assert!(slow.valid && slow.advisories.is_empty(), "{}", shown());
    }
    sure
}

#[test]
fn checker_is_sure_of_every_sound_vector_except_unusually_written_ones() {
    let mut left = Vec::new();
    let mut sure = 0;
    for case in cases() {
        let validator = validator(&case.options);
        if agreed(&validator, &case.document) {
            sure += 1;
            continue;
        }
        let outcome = validator.validate_by_tree(&case.document);
        if outcome.valid && outcome.advisories.is_empty() {
            left.push(case.name);
        }
    }
    assert_eq!(left, LEFT_TO_THE_TREE);
    assert!(sure > 100, "sure of only {sure} vectors");
}

/// The seeds of a search: as many as `GATEWRIGHT_MUTATIONS` says, or else the usual number.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let wanted = std::env::var("GATEWRIGHT_MUTATIONS").ok().and_then(|count| count.parse().ok());
    0..wanted.unwrap_or(usual)
}

/// The documents that searches start from: every valid vector of the usual profile that is not large.
fn valid() -> Vec<Vec<u8>> {
    let usual = cases().into_iter().filter(|case| case.options.is_empty() && case.document.len() < 100_000);
    let valid: Vec<Vec<u8>> = usual.filter(|case| case.valid).map(|case| case.document).collect();
    assert!(valid.len() > 100, "only {} valid vectors", valid.len());
    valid
}

/// 2.12: however a sound report is changed, the checker is sure only if the tree finds nothing.
#[test]
fn checker_and_tree_agree_on_mutated_reports() {
    let validator = Validator::default();
    let sound: Vec<Vec<u8>> =
        valid().into_iter().filter(|document| validator.is_surely_sound(document)).collect();
    let (mut sure, mut unsound) = (0, 0);
    for seed in seeds(6000) {
        let mut choices = Choices::new(seed);
        let base = &sound[choices.below(sound.len())];
        let document = written(base, &mut choices);
        if agreed(&validator, &document) {
            sure += 1;
        } else if !validator.validate_by_tree(&document).valid {
            unsound += 1;
        }
    }
    assert!(sure > 1000 && unsound > 1000, "sure of {sure}, {unsound} invalid");
}

/// 2.12: an object that needs no tree changes no finding, whatever else is wrong with the report.
#[test]
fn findings_match_the_whole_tree() {
    let bases = valid();
    let own = Validator::builder().models(["model-sol", "b"]).max_findings(3).build();
    let mut findings = 0;
    let usual = Validator::default();
    for seed in seeds(2000) {
        let mut choices = Choices::new(seed);
        let document = written(&bases[choices.below(bases.len())], &mut choices);
        for validator in [&usual, &own] {
            let (fast, slow) = (validator.validate(&document), validator.validate_by_tree(&document));
            let shown = || String::from_utf8_lossy(&document).into_owned();
            assert_eq!(fast.to_json(), slow.to_json(), "{}", shown());
            assert_eq!(fast.report, slow.report, "{}", shown());
            findings += fast.violations.len() + fast.advisories.len();
        }
    }
    assert!(findings > 3000, "only {findings} findings");
}

/// 2.12: the models are not in the tree, but findings still report where a model is.
#[test]
fn model_without_an_access_check_is_located_despite_other_errors() {
    let base = std::fs::read("../tests/vectors/report/bases/full.json").expect("readable");
    let mut report: serde_json::Value = serde_json::from_slice(&base).expect("JSON");
    let model = report["configuration"]["models"][1].clone();
    let checks = report["checks"].as_array_mut().expect("checks");
    checks.retain(|check| check["id"] != "model_access" || check["model"] != model);
    for place in ["/endpoint", "/summary/passed", "/checks/0/duration_ms", "/configuration/timeout_ms"] {
        let mut report = report.clone();
        *report.pointer_mut(place).expect(place) = "wrong".into();
        let document = serde_json::to_vec_pretty(&report).expect("JSON");
        let (fast, slow) =
            (Validator::default().validate(&document), Validator::default().validate_by_tree(&document));
        assert_eq!(fast.to_json(), slow.to_json(), "{place}");
        assert!(fast.violations.iter().any(|found| found.pointer == place), "{place}");
        let found = fast.advisories.iter().find(|found| found.rule == "model_access").expect(place);
        let line = str::from_utf8(&document).expect("UTF-8").lines().nth(found.line - 1).expect("a line");
        assert_eq!(found.pointer, "/configuration/models/1");
        assert_eq!(&line[found.column - 1..].trim_end_matches(','), &model.to_string());
    }
}

/// 2.12: every byte of a report, replaced by each of several: JSON's structural bytes, and unusual ones.
#[test]
fn checker_and_tree_agree_wherever_a_byte_changes() {
    let base = std::fs::read("../tests/vectors/report/bases/minimal.json").expect("readable");
    let validator = Validator::default();
    assert!(agreed(&validator, &base));
    for at in 0..base.len() {
        let mut document = base.clone();
        for byte in *b"\"\\{}[]:, 09e-\n\x00\x0b\x0c\x7f\xa0\xc3" {
            document[at] = byte;
            agreed(&validator, &document);
        }
        agreed(&validator, &base[..at]);
        let inserted = [&base[..at], b" ", &base[at..]].concat();
        agreed(&validator, &inserted);
    }
}

fn with(old: &str, new: &str) -> Vec<u8> {
    let base = std::fs::read_to_string("../tests/vectors/report/bases/minimal.json").expect("readable");
    assert!(base.contains(old), "{old}");
    base.replacen(old, new, 1).into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn checker_is_sure_only_of_dates(date in r"[0-9]{4}-(0[0-9]|1[0-3])-[0-3][0-9][Tt][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,3})?([Zz]|[+-][0-2][0-9]:[0-6][0-9])") {
        agreed(&Validator::default(), &with("2026-01-31T12:00:00Z", &date));
    }

    #[test]
    fn checker_is_sure_only_of_uris(uri in r"[a-z+1]{0,3}:?/{0,2}[a-z@:.%\[\]é]{0,6}(:[0-9]{0,6})?(/[a-z@:%/?#!\[|é ]{0,6})?") {
        agreed(&Validator::default(), &with("https://gateway.example.com", &uri));
    }

    #[test]
    fn checker_is_sure_only_of_strings(text in r#"([a-zé😀/\x00-\x1f"]|\\["\\/bfnrtux]|\\u(d8|dc|D8|00)[0-9a-fg]{2}){0,12}"#) {
        agreed(&Validator::default(), &with("\"/v1\"", &format!("\"/{text}\"")));
    }

    #[test]
    fn checker_is_sure_only_of_integers(number in r"-?(0|[0-9]{1,18})(\.0|e1)?") {
        for known in ["30000", ": 0,", "\"passed\": 2"] {
            let new = known.replace(|letter: char| letter.is_ascii_digit(), "");
            let new = if known == "30000" { number.clone() } else { new.replacen(": ", &format!(": {number}"), 1) };
            agreed(&Validator::default(), &with(known, &new));
        }
    }
}

/// 2.12: lengths count code points, including those written as escapes.
#[test]
fn checker_counts_code_points_in_escapes_too() {
    let validator = Validator::default();
    let base = std::fs::read_to_string("../tests/vectors/report/bases/full.json").expect("readable");
    let report: serde_json::Value = serde_json::from_str(&base).expect("JSON");
    let checks = report["checks"].as_array().expect("checks");
    let failed = checks.iter().position(|check| check["error"].is_object()).expect("a failed check");
    let message = report["checks"][failed]["error"]["message"].to_string();
    for (unit, times, fits) in [
        ("é", 2000, true),
        ("é", 2001, false),
        ("\\u00e9", 2000, true),
        ("\\u00e9", 2001, false),
        ("\\ud83d\\ude00", 2000, true),
        ("\\uD83D\\uDE00", 2001, false),
        ("😀", 2000, true),
        ("\\n", 2000, true),
        ("\\n", 2001, false),
        ("a", 2000, true),
        ("a", 2001, false),
    ] {
        let document = base.replace(&message, &format!("\"{}\"", unit.repeat(times)));
        assert_ne!(document, base);
        assert_eq!(agreed(&validator, document.as_bytes()), fits, "{times} × {unit}");
    }
}

/// A deployment's own names, set by a profile.
#[test]
fn checker_accepts_a_deployments_own_names() {
    let base = String::from_utf8(with("model-sol", "m é")).expect("UTF-8").replace("model-sol", "m é");
    let own = Validator::builder().models(["z", "m é", "a\"b"]).kit_name("our kit").build();
    let document = base.replace("gatewright-checkkit", "our kit");
    assert!(agreed(&own, document.as_bytes()));
    assert!(!agreed(&own, base.as_bytes()), "the kit's name is another one");
    assert!(!agreed(&Validator::default(), document.as_bytes()));
    // A name that needs an escape is valid, but the checker can't decide that.
    let escaped = document.replace("m é", "a\\\"b");
    assert!(!agreed(&own, escaped.as_bytes()));
    assert!(own.validate(escaped.as_bytes()).valid);
    // Nor can it accept too many names.
    let many = Validator::builder().models((0..2000).map(|index| format!("m{index}"))).build();
    let document = base.replace("m é", "m1999");
    assert!(!agreed(&many, document.as_bytes()));
    assert!(many.validate(document.as_bytes()).valid);
    let many = Validator::builder().models((0..1000).map(|index| format!("m{index}"))).build();
    assert!(agreed(&many, base.replace("m é", "m999").as_bytes()));
}

/// No tree, no text: checking a sound report allocates nothing.
#[test]
fn sound_report_is_checked_without_an_allocation() {
    let validator = Validator::default();
    let document = std::fs::read("../tests/vectors/report/bases/full.json").expect("readable");
    assert!(validator.is_surely_sound(&document));
    let info = allocation_counter::measure(|| assert!(validator.check(&document).valid));
    assert_eq!(info.count_total, 0);
}
