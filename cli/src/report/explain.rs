//! `gatewright report explain`.

use std::fmt::Write as _;

use clap::Args;
use gatewright::report::{RULES, Rule, RuleKind};

use crate::exit::{Exit, Failure};
use crate::places;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Rule of a violation or advisory, as `validate` names it [default: list all rules]
    #[arg(value_name = "RULE")]
    rule: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> Exit {
    let text = match &arguments.rule {
        Some(name) => match Rule::named(name) {
            Some(rule) => rule.to_text(),
            None => return Err(Failure::Usage(format!("there is no rule {name}\n{}", list().trim_end()))),
        },
        None => list(),
    };
    places::write(&text, None)?;
    Ok(0)
}

fn list() -> String {
    let mut text = String::new();
    for (kind, title) in [
        (RuleKind::Reading, "Parsing (a document that breaks one of these cannot be read)"),
        (RuleKind::Schema, "Section 2.12"),
        (RuleKind::Advisory, "Advisories (count as violations with --strict)"),
    ] {
        writeln!(text, "{title}:").expect("writing to a string succeeds");
        for rule in RULES.iter().filter(|rule| rule.kind == kind) {
            writeln!(text, "  {:<22}{}", rule.name, rule.summary).expect("writing to a string succeeds");
        }
    }
    text
}
