//! `gatewright report explain`.

use std::fmt::Write as _;

use clap::Args;
use gatewright::did_you_mean::suggestion;
use gatewright::report::{CheckId, RULES, Rule, RuleKind};
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::{json, places};

/// The kinds of rules, with their names in JSON and their titles in the list.
const KINDS: [(RuleKind, &str, &str); 3] = [
    (RuleKind::Reading, "parsing", "Parsing (a document that breaks one of these cannot be read)"),
    (RuleKind::Schema, "schema", "The schema of reports"),
    (RuleKind::Advisory, "advisory", "Advisories (count as violations with --strict)"),
];

#[derive(Debug, Args)]
pub(super) struct ExplainArguments {
    /// Rule of a violation or advisory, as `validate` names it, or a check [default: list all]
    #[arg(value_name = "RULE")]
    rule: Option<String>,
    /// Print JSON: an array of all rules and checks, or an object for one
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &ExplainArguments) -> Exit {
    let text = match &arguments.rule {
        Some(name) => match (Rule::named(name), check(name)) {
            (Some(rule), _) if arguments.json => as_json(&of_rule(rule)),
            (Some(rule), _) => rule.to_text(),
            (None, Some(check)) if arguments.json => as_json(&of_check(check)),
            (None, Some(check)) => format!("{check}, a check: {}\n", check.meaning()),
            (None, None) => {
                let checks = CheckId::ALL.map(CheckId::name);
                let offer = suggestion(name, RULES.iter().map(|rule| rule.name).chain(checks));
                let problem = format!("no rule or check is named {name}{offer}");
                return Err(Failure::Usage(format!("{problem}\n{}", list().trim_end())));
            }
        },
        None if arguments.json => {
            let checks = CheckId::ALL.into_iter().map(of_check);
            as_json(&RULES.iter().map(of_rule).chain(checks).collect())
        }
        None => list(),
    };
    places::write(&text, None)?;
    Ok(0)
}

fn check(name: &str) -> Option<CheckId> {
    CheckId::ALL.into_iter().find(|check| check.name() == name)
}

fn as_json(document: &Value) -> String {
    json::text(document) + "\n"
}

/// A rule as JSON; a check has the same members.
fn of_rule(rule: &Rule) -> Value {
    let kind = KINDS.iter().find(|(kind, ..)| *kind == rule.kind).map(|(_, name, _)| *name);
    let places = rule.places();
    let places =
        places.iter().map(|(pointer, requirement)| json!({ "pointer": pointer, "requirement": requirement }));
    json!({
        "name": rule.name,
        "kind": kind,
        "section": rule.section,
        "summary": rule.summary,
        "explanation": rule.explanation,
        "example": { "pointer": rule.pointer, "wrong": rule.wrong, "right": rule.right },
        "places": places.collect::<Vec<_>>(),
    })
}

fn of_check(check: CheckId) -> Value {
    json!({
        "name": check.name(),
        "kind": "check",
        "section": "2.12",
        "summary": check.meaning(),
        "explanation": null,
        "example": null,
        "places": [],
    })
}

fn list() -> String {
    let mut text = String::new();
    for (kind, _, title) in KINDS {
        writeln!(text, "{title}:").expect("writing to a string succeeds");
        for rule in RULES.iter().filter(|rule| rule.kind == kind) {
            writeln!(text, "  {:<22}{}", rule.name, rule.summary).expect("writing to a string succeeds");
        }
    }
    text.push_str("Checks of a report:\n");
    for check in CheckId::ALL {
        writeln!(text, "  {:<24}{}", check.name(), check.meaning()).expect("writing to a string succeeds");
    }
    text
}
