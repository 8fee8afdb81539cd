//! `gatewright report explain`.

use std::fmt::Write as _;

use clap::Args;
use gatewright::did_you_mean::suggestion;
use gatewright::report::{CheckId, RULES, Rule, RuleKind};

use crate::exit::{Exit, Failure};
use crate::places;

#[derive(Debug, Args)]
pub(super) struct ExplainArguments {
    /// Rule of a violation or advisory, as `validate` names it, or a check [default: list all]
    #[arg(value_name = "RULE")]
    rule: Option<String>,
}

pub(super) fn run(arguments: &ExplainArguments) -> Exit {
    let text = match &arguments.rule {
        Some(name) => match (Rule::named(name), check(name)) {
            (Some(rule), _) => rule.to_text(),
            (None, Some(check)) => format!("{check}, a check: {}\n", check.meaning()),
            (None, None) => {
                let checks = CheckId::ALL.map(CheckId::name);
                let offer = suggestion(name, RULES.iter().map(|rule| rule.name).chain(checks));
                let problem = format!("no rule or check is named {name}{offer}");
                return Err(Failure::Usage(format!("{problem}\n{}", list().trim_end())));
            }
        },
        None => list(),
    };
    places::write(&text, None)?;
    Ok(0)
}

fn check(name: &str) -> Option<CheckId> {
    CheckId::ALL.into_iter().find(|check| check.name() == name)
}

fn list() -> String {
    let mut text = String::new();
    for (kind, title) in [
        (RuleKind::Reading, "Parsing (a document that breaks one of these cannot be read)"),
        (RuleKind::Schema, "The schema of reports"),
        (RuleKind::Advisory, "Advisories (count as violations with --strict)"),
    ] {
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
