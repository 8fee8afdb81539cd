//! Reports and verdicts in the formats that terminals and CI systems read.

use gatewright_report::{
    SARIF_FOOT, Status, Validator, annotations, html, junit, sarif, sarif_head, terminal, validate,
};
use insta::assert_snapshot;
use serde_sarif::sarif::Sarif;

use crate::bases;

#[test]
fn terminal_shows_the_matrix_and_what_went_wrong() {
    let full = bases::report("full");
    assert_snapshot!(terminal(&full, false));
    assert_snapshot!(terminal(&full, true).replace('\u{1b}', "ESC"));
}

#[test]
fn cause_is_reported_once_for_all_its_cells_and_skipped_cells_in_one_line() {
    let mut report = bases::report("full");
    let mut failed = report.checks[0].clone();
    failed.status = Status::Fail;
    failed.error = Some(report.checks.iter().find_map(|check| check.error.clone()).expect("a failure"));
    let skipped = report.checks.iter().find(|check| check.status == Status::Skip).expect("one").clone();
    let on = |check: &gatewright_report::Check, model: &str, message: &str| {
        let mut check = gatewright_report::Check { model: Some(model.to_owned()), ..check.clone() };
        if let Some(error) = &mut check.error {
            error.message = message.to_owned();
        }
        check
    };
    report.checks = vec![
        on(&failed, "model-a", "model-a is not in the list"),
        on(&failed, "model-b", "model-b is not in the list"),
        on(&failed, "model-c", "another cause"),
        on(&skipped, "model-a", ""),
        on(&skipped, "model-b", ""),
    ];
    let text = terminal(&report, false);
    let explanations =
        text.split_once("\n\n").and_then(|(_, rest)| rest.split_once("\n\n")).expect("explanations").1;
    assert_snapshot!(explanations);
}

/// The same truncation is one cause, even if long model names change the length of the responses; another status is another
/// cause.
#[test]
fn causes_that_differ_only_in_a_count_are_merged_with_a_range() {
    let base = bases::report("full");
    let failed = base.checks.iter().find(|check| check.error.is_some()).expect("a failure").clone();
    let on = |model: &str, message: &str| {
        let mut check = gatewright_report::Check { model: Some(model.to_owned()), ..failed.clone() };
        let error = check.error.as_mut().expect("an error");
        (error.category, error.code, error.message) = ("protocol".to_owned(), None, message.to_owned());
        check
    };
    let mut report = base;
    report.checks = vec![
        on("model-a", "the response was cut off after 219 bytes, in the middle of its JSON"),
        on("model-bb", "the response was cut off after 213 bytes, in the middle of its JSON"),
        on("model-c", "the response was cut off after 217 bytes, in the middle of its JSON"),
        on("model-a", "status 500"),
        on("model-bb", "status 503"),
    ];
    let page = html(&report, &[]);
    let failures = page
        .split_once("id=\"failures\"")
        .and_then(|(_, rest)| rest.split_once("</section>"))
        .expect("a list")
        .0;
    assert_eq!(failures.matches("<li>").count(), 3, "{failures}");
    let first = failures.split("<li>").nth(1).expect("an item");
    let cells = [("cell-0", "model-a"), ("cell-1", "model-bb"), ("cell-2", "model-c")];
    for (cell, model) in cells {
        let link =
            first.split_once(&format!("href=\"#{cell}\">")).and_then(|(_, rest)| rest.split_once("</a>"));
        assert!(link.expect("a link").0.ends_with(model), "{first}");
    }
    assert_eq!(first.matches("<code>").count(), 1, "the check is named once: {first}");
    assert!(
        first.contains("was cut off after 213 to 219\u{a0}bytes, in the middle of its JSON</li>"),
        "{first}"
    );
    let text = terminal(&report, false);
    let failures: Vec<&str> = text.lines().filter(|line| line.starts_with("FAIL agent")).collect();
    assert_eq!(
        failures,
        [
            "FAIL agent_cli_smoke model-a, model-bb, model-c: \
             protocol: the response was cut off after 213 to 219 bytes, in the middle of its JSON",
            "FAIL agent_cli_smoke model-a: protocol: status 500",
            "FAIL agent_cli_smoke model-bb: protocol: status 503",
        ]
    );
}

#[test]
fn report_cannot_control_the_terminal() {
    let mut full = bases::report("full");
    full.kit.version = "\u{1b}[31m\u{202e}".to_owned();
    full.endpoint = "https://a\u{7}".to_owned();
    full.checks[5].error.as_mut().expect("an error").message = "\r\n::error::\u{9b}".to_owned();
    for text in [terminal(&full, false), annotations(&full), junit(&full)] {
        assert!(
            !text.chars().any(|shown| (shown.is_control() && shown != '\n') || shown == '\u{202e}'),
            "{text}"
        );
    }
    assert_eq!(annotations(&full).lines().count(), 2, "one line for each failure");
}

#[test]
fn duplicate_cell_is_shown_twice() {
    let mut minimal = bases::report("minimal");
    let mut again = minimal.checks[0].clone();
    again.status = Status::Fail;
    minimal.checks.push(again);
    assert!(
        terminal(&minimal, false).contains("models_endpoint  pass, FAIL\n"),
        "{}",
        terminal(&minimal, false)
    );
}

#[test]
fn junit_has_a_suite_per_model() {
    let full = bases::report("full");
    let xml = junit(&full);
    assert_snapshot!(xml);
    let document = roxmltree::Document::parse(&xml).expect("well-formed");
    let root = document.root_element();
    let attribute = |name| root.attribute(name).and_then(|value| value.parse::<usize>().ok());
    assert_eq!(attribute("tests"), Some(full.checks.len()));
    assert_eq!(attribute("failures"), Some(2));
    assert_eq!(attribute("skipped"), Some(1));
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
    assert_eq!(cases.count(), full.checks.len());
}

#[test]
fn failed_checks_become_annotations() {
    assert_snapshot!(annotations(&bases::report("full")));
    assert_eq!(annotations(&bases::report("minimal")), "");
}

const BROKEN: &str = "{\"schema_version\": \"1,1:%\"}";

#[test]
fn findings_become_annotations() {
    let outcome = validate(BROKEN.as_bytes());
    let text = outcome.to_annotations("odd, name: 50%.json");
    assert_eq!(text.lines().count(), outcome.violations.len());
    let last = text.lines().last().expect("a line");
    assert_eq!(
        last,
        "::error file=odd%2C name%3A 50%25.json,line=1,col=20,title=const::\
         /schema_version: \"1,1:%25\" is not \"1.0\""
    );
    let advice = bases::text("minimal").replacen("\"passed\": 2", "\"passed\": 3", 1);
    assert!(validate(advice.as_bytes()).to_annotations("a.json").starts_with("::warning file=a.json,line="));
}

#[test]
fn sarif_log_is_valid_for_the_sarif_schema() {
    let results = validate(BROKEN.as_bytes()).to_sarif("reports/odd name:50%.json");
    assert_snapshot!(results.lines().last().expect("a result").trim_end_matches(','));
    let log: Sarif = serde_json::from_str(&format!("{}{results}{SARIF_FOOT}", sarif_head()))
        .expect("the types of SARIF hold it");
    let run = &log.runs[0];
    let rules = run.tool.driver.rules.as_ref().expect("rules");
    for result in run.results.as_ref().expect("results") {
        let index = usize::try_from(result.rule_index.expect("an index")).expect("not negative");
        assert_eq!(Some(&rules[index].id), result.rule_id.as_ref());
    }
    let empty: Sarif = serde_json::from_str(&format!("{}{SARIF_FOOT}", sarif_head())).expect("an empty log");
    assert_eq!(empty.runs[0].results.as_ref().map(Vec::len), Some(0));
}

#[test]
fn sarif_results_of_checks_are_where_the_checks_are_in_the_document() {
    let full = bases::text("full");
    let lines = |log: &str| -> Vec<u64> {
        let log: serde_json::Value = serde_json::from_str(log).expect("JSON");
        let results = log["runs"][0]["results"].as_array().expect("results").clone();
        let line = "/locations/0/physicalLocation/region/startLine";
        results
            .iter()
            .map(|result| result.pointer(line).and_then(serde_json::Value::as_u64).expect("a line"))
            .collect()
    };
    let validator = Validator::default();
    let places = lines(&validator.sarif(full.as_bytes(), "full.json").expect("a valid report"));
    assert_eq!(places.len(), 2);
    let check_begins = |line: &u64| {
        let line = usize::try_from(*line).expect("a small number");
        full.lines().nth(line - 1).is_some_and(|text| text.trim() == "{")
    };
    assert!(places.iter().all(check_begins), "{places:?}");
    // In canonical form, the two functions agree.
    let report = validator.read(full.as_bytes()).expect("a valid report");
    let canonical = report.to_json();
    let of_report = sarif(&report, "full.json");
    assert_eq!(validator.sarif(canonical.as_bytes(), "full.json").expect("a valid report"), of_report);
    // Each line break moves the places by one.
    let moved = validator.sarif(full.replacen('{', "\r\n\r{", 1).as_bytes(), "full.json").expect("valid");
    assert_eq!(lines(&moved), places.iter().map(|line| line + 2).collect::<Vec<_>>());
    let outcome = validator.sarif(b"{}", "full.json").expect_err("no report");
    assert!(!outcome.valid);
}

#[test]
fn findings_in_a_line_of_a_file_have_that_line_number() {
    let outcome = validate(BROKEN.as_bytes()).from_line(7);
    assert!(outcome.violations.iter().all(|violation| violation.line == 7));
    let text = outcome.to_text("reports.ndjson", BROKEN.as_bytes(), false);
    assert!(text.starts_with("reports.ndjson:7:1: error[required]"), "{text}");
    assert!(text.contains("\n 7 | {\"schema_version\""), "{text}");
    assert!(outcome.from_line(2).violations.iter().all(|violation| violation.line == 2));
}
