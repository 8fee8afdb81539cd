//! Pages: their contents, and that nothing from a report can become more than text.

use std::sync::LazyLock;

use gatewright_report::{
    Assertion, Diff, Evidence, EvidenceFile, Exchange, ProtocolReport, Report, Status, Thresholds, Trend,
    html, html_with_protocols, junit,
};
use html5gum::{Token, Tokenizer};
use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::Value;

use crate::bases;

/// Words of closed sets, and those that decide the shape of a page.
const KEPT: [&str; 5] = ["id", "layer", "status", "overall_status", "agent_mode"];

/// A value with this text appended to every free-form string and name of a report.
fn dressed(value: &Value, text: &str) -> Value {
    match value {
        Value::String(string) => Value::String(format!("{string}{text}")),
        Value::Array(items) => items.iter().map(|item| dressed(item, text)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| {
                let value = if KEPT.contains(&name.as_str()) { value.clone() } else { dressed(value, text) };
                // Header names: the types allow any.
                let name = if name.starts_with("x-") { format!("{name}{text}") } else { name.clone() };
                (name, value)
            })
            .collect(),
        _ => value.clone(),
    }
}

fn report(text: &str) -> Report {
    let full = serde_json::from_str(&bases::text("full")).expect("JSON");
    serde_json::from_value(dressed(&full, text)).expect("the types hold any text")
}

fn protocols(text: &str) -> ProtocolReport {
    let vectors = include_str!("../../../tests/vectors/report-forms/protocols.json");
    let vectors: Value = serde_json::from_str(vectors).expect("JSON");
    serde_json::from_value(dressed(&vectors["document"], text)).expect("the types hold any text")
}

fn evidence(text: &str) -> Vec<EvidenceFile> {
    let dress = |string: &str| format!("{string}{text}");
    let report = report(text);
    let file = |index: usize, id| EvidenceFile {
        path: dress(&format!("evidence/{index:02}.json")),
        evidence: Evidence {
            id,
            model: report.checks[index].model.clone(),
            assertions: vec![Assertion {
                what: dress("HTTP status"),
                expected: dress("200"),
                observed: dress("500"),
                held: false,
            }],
            exchange: Some(Exchange {
                request: dress("POST /v1/responses\r\n\r\n{}"),
                response: dress("HTTP/1.1 500\n"),
            }),
        },
    };
    // The last one belongs to no cell: the first cell of that name is used.
    [2, 5, 5].map(|index| file(index, report.checks[index].id)).to_vec()
}

/// All pages of a report, of two, and of additional checks.
fn pages(text: &str) -> [String; 5] {
    let old = report(text);
    let mut new = old.clone();
    new.endpoint.push('x');
    new.checks[2].status = Status::Fail;
    new.checks[2].reported_model = Some(Some(format!("{text}another")));
    new.checks[3].duration_ms = Some(9999);
    let mut trend = Trend::default();
    trend.add(&format!("a.json{text}"), &old);
    trend.add("b.json", &new);
    // A second report with the first address: a single one has no curve.
    trend.add(&format!("d.json{text}"), &old);
    trend.refuse(&format!("c.json{text}"), &format!("no report{text}"));
    let protocols = protocols(text);
    [
        html(&old, &evidence(text)),
        Diff::of(&old, &new, Thresholds::default()).to_html(),
        trend.to_html(),
        protocols.to_html(),
        html_with_protocols(&old, &evidence(text), &protocols),
    ]
}

/// The tags of a page with their attribute names, and the values of attributes that are addresses.
fn structure(page: &str) -> (Vec<String>, Vec<String>) {
    let (mut tags, mut addresses) = (Vec::new(), Vec::new());
    for token in Tokenizer::new(page) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let mut shape = String::from_utf8_lossy(&tag.name).into_owned();
                for (name, value) in &tag.attributes {
                    let name = String::from_utf8_lossy(name).into_owned();
                    if ["href", "src", "xlink:href", "action", "style", "srcset"].contains(&name.as_str()) {
                        addresses.push(String::from_utf8_lossy(value).into_owned());
                    }
                    shape = format!("{shape} {name}");
                }
                tags.push(shape);
            }
            Token::EndTag(tag) => tags.push(format!("/{}", String::from_utf8_lossy(&tag.name))),
            Token::Comment(_) => tags.push("comment".to_owned()),
            Token::Doctype(_) => tags.push("doctype".to_owned()),
            Token::Error(error) => tags.push(format!("error {error:?}")),
            Token::String(text) => {
                let text = String::from_utf8_lossy(&text);
                let acts = |shown: char| shown.is_control() && shown != '\n' || shown == '\u{202e}';
                assert!(!text.contains(acts), "{text:?}");
            }
        }
    }
    (tags, addresses)
}

fn assert_only_text_changes(text: &str) {
    static PLAIN: LazyLock<Vec<Vec<String>>> =
        LazyLock::new(|| pages("a").iter().map(|page| structure(page).0).collect());
    for (expected, hostile) in PLAIN.iter().zip(&pages(text)) {
        let (tags, addresses) = structure(hostile);
        let difference = expected.iter().zip(&tags).find(|(expected, found)| expected != found);
        assert_eq!(difference, None, "{text:?} changed the structure");
        assert_eq!(tags.len(), expected.len(), "{text:?} changed the structure");
        assert!(!tags.iter().any(|tag| tag.starts_with("script") || tag.starts_with("error")), "{text:?}");
        for address in addresses {
            assert!(address.starts_with("#cell-") || address.starts_with("./evidence/"), "{address:?}");
            let odd = |shown: char| !shown.is_ascii_alphanumeric() && !"#./-_%".contains(shown);
            assert!(!address.contains(odd), "{address:?}");
        }
    }
    // A report may contain no such text; JUnit has the same number of suites anyway.
    let count = |text| {
        let xml = junit(&report(text));
        roxmltree::Document::parse(&xml)
            .expect("well-formed")
            .descendants()
            .filter(roxmltree::Node::is_element)
            .count()
    };
    assert_eq!(count(text), count("a"), "{text:?}");
}

const HOSTILE: [&str; 16] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "</style><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "--><svg onload=alert(1)>",
    "]]><failure/>",
    "&lt;script&gt;",
    "&#60;b&#62;",
    "\0\u{1}\u{8}\u{b}\u{1f}\u{7f}\u{85}\u{9f}",
    "\u{202e}\u{2066}\u{200b}\u{feff}",
    "\u{fffe}\u{ffff}",
    "\r\n\r\n<h1>",
    "{{7*7}}${7*7}",
    "../../etc/passwd?x#y",
];

#[test]
fn hostile_text_stays_text() {
    for text in HOSTILE {
        assert_only_text_changes(text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_text_stays_text(parts in prop::collection::vec(prop_oneof![
        prop::sample::select(&HOSTILE[..]).prop_map(str::to_owned),
        any::<String>(),
        "[<>\"'&/=a-z ]{0,8}",
    ], 1..5)) {
        assert_only_text_changes(&parts.concat());
    }
}

#[test]
fn report_page_is_self_contained() {
    let page = html(&bases::report("full"), &evidence("")[..1]);
    let markup = page.split("</style>").last().expect("the page has a style");
    for absent in ["<script", "http://", "src=", "@import", "url(", "<link", "<iframe", "style="] {
        assert!(!markup.contains(absent), "{absent}");
    }
    assert!(page.contains("content=\"default-src 'none'; style-src 'sha256-"));
    assert_snapshot!(body(&page));
}

/// A page without its head, with each tag on its own line.
fn body(page: &str) -> String {
    let body = page.split_once("<body>").expect("a body").1.replace("><", ">\n<");
    body.replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

#[test]
fn page_of_a_comparison() {
    let [_, diff, ..] = pages("");
    assert_snapshot!(body(&diff));
}

#[test]
fn page_of_a_trend() {
    let [_, _, trend, ..] = pages("");
    assert_snapshot!(body(&trend));
}

/// The verdict counts the checks, and each failure says why.
#[test]
fn page_of_additional_checks_has_a_row_for_each() {
    let page = body(&protocols("").to_html());
    assert!(page.contains("1 passed, 1 failed, 1 skipped"), "{page}");
    assert_eq!(page.matches("<th scope=\"row\">").count(), 3, "{page}");
    assert!(page.contains("HTTP status: status 404, not 200"), "{page}");
}

#[test]
fn every_matrix_cell_links_to_its_article() {
    let page = html(&bases::report("full"), &[]);
    let (_, addresses) = structure(&page);
    assert!(addresses.len() >= 9, "{addresses:?}");
    for address in addresses {
        let id = address.strip_prefix('#').expect("a place in the page");
        assert_eq!(page.matches(&format!("<article id=\"{id}\"")).count(), 1, "{id}");
    }
}

#[test]
fn only_failed_cells_are_open() {
    let report = bases::report("full");
    let failed = report.checks.iter().filter(|check| check.status == Status::Fail).count();
    let page = html(&report, &[]);
    assert!(failed > 0);
    assert_eq!(page.matches("<details class=\"cell\" open>").count(), failed);
    assert_eq!(page.matches("<details class=\"cell\"").count(), report.checks.len());
}

#[test]
fn trend_of_one_report_draws_no_curve() {
    let mut trend = Trend::default();
    trend.add("a.json", &bases::report("full"));
    assert_snapshot!(body(&trend.to_html()));
}

#[test]
fn table_headings_have_a_scope_and_images_a_name() {
    for page in pages("") {
        for token in Tokenizer::new(&page) {
            let Ok(Token::StartTag(tag)) = token else { continue };
            let has = |name: &[u8]| tag.attributes.contains_key(name);
            match &**tag.name {
                b"th" => assert!(has(b"scope")),
                b"svg" => assert!(has(b"aria-hidden") || (has(b"role") && has(b"aria-label"))),
                b"html" => assert!(has(b"lang")),
                _ => {}
            }
        }
    }
}

#[test]
fn trend_shows_the_newest_reports_and_mentions_it() {
    let mut trend = Trend::default();
    let mut report = bases::report("minimal");
    for minute in 0..1010 {
        report.generated_at =
            format!("2026-01-{:02}T{:02}:{:02}:00Z", 1 + minute / 1440, minute / 60 % 24, minute % 60);
        trend.add("a.json", &report);
    }
    let page = trend.to_html();
    assert!(page.contains("Omitted: 10 older reports."));
    assert!(page.contains("From 2026-01-01T00:10:00Z to 2026-01-01T16:49:00Z."));
}
