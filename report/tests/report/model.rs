//! The typed report: it can represent every valid report, and writes it back unchanged.

use gatewright_report::{AgentMode, CheckId, Layer, OverallStatus, Status, Validator, validate};
use serde_json::Value;

use crate::vectors;

#[test]
fn every_valid_report_round_trips_unchanged() {
    let mut compared = 0;
    for case in vectors::cases().iter().filter(|case| case.valid) {
        let outcome = vectors::validator(&case.options).validate(&case.document);
        let report = outcome.report.unwrap_or_else(|| panic!("{} has no report", case.name));
        let written = serde_json::to_vec(&report).expect("a report serializes");
        let again = vectors::validator(&case.options).validate(&written);
        // Integers outside 64 bits become the nearest that fits; everything else is unchanged.
        if outcome.advisories.iter().all(|advisory| advisory.rule != "unsafe_integer") {
            assert_eq!(again.report.as_ref(), Some(&report), "{}", case.name);
            let json = |document: &[u8]| -> Value { serde_json::from_slice(document).expect("JSON") };
            assert!(integral(&json(&written)) == integral(&json(&case.document)), "{}", case.name);
            compared += 1;
        }
    }
    assert!(compared > 200, "only {compared} reports were compared");
}

/// The document with integral numbers in one notation.
pub(crate) fn integral(document: &Value) -> Value {
    fn rewrite(value: &mut Value) {
        match value {
            Value::Number(number) => {
                let double = number.as_f64().expect("a finite number");
                *value = format!("{}", double + 0.0).into();
            }
            Value::Array(items) => items.iter_mut().for_each(rewrite),
            Value::Object(members) => members.values_mut().for_each(rewrite),
            _ => {}
        }
    }
    let mut value = document.clone();
    rewrite(&mut value);
    value
}

#[test]
fn absent_and_null_are_distinct() {
    let full = std::fs::read("../tests/vectors/report/bases/full.json").expect("the full report is there");
    let report = validate(&full).report.expect("the full report is valid");
    assert_eq!(report.checks[0].usage, None);
    assert_eq!(report.checks[3].usage, Some(None));
    let usage = report.checks[2].usage.flatten().expect("a usage");
    assert_eq!((usage.input_tokens, usage.cached_tokens, usage.reasoning_tokens), (Some(20), Some(0), None));
    assert_eq!(report.checks[5].exit_code, Some(None));
}

#[test]
fn fields_are_typed() {
    let full = std::fs::read("../tests/vectors/report/bases/full.json").expect("the full report is there");
    let report = validate(&full).report.expect("the full report is valid");
    assert_eq!(report.overall_status, OverallStatus::Fail);
    assert_eq!(report.configuration.agent_mode, AgentMode::OneModel);
    let agent = &report.checks[5];
    assert_eq!((agent.id, agent.layer, agent.status), (CheckId::AgentCliSmoke, Layer::Agent, Status::Fail));
    assert_eq!(agent.error.as_ref().map(|error| error.category.as_str()), Some("timeout"));
}

/// 2.12 gives no maximum: an integer that doesn't fit into a machine word is valid, and read as the nearest that does.
#[test]
fn integers_outside_64_bits_are_read_as_the_nearest() {
    let minimal = std::fs::read_to_string("../tests/vectors/report/bases/minimal.json").expect("readable");
    let document = minimal.replacen(
        r#""status": "pass""#,
        r#""status": "pass", "duration_ms": 1e300, "exit_code": -1e300, "event_count": 3e2"#,
        1,
    );
    let report = Validator::default().validate(document.as_bytes()).report.expect("valid");
    let check = &report.checks[0];
    assert_eq!(check.duration_ms, Some(u64::MAX));
    assert_eq!(check.exit_code, Some(Some(i64::MIN)));
    assert_eq!(check.event_count, Some(300));
}
