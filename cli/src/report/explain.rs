//! `gatewright report explain`.

use std::fmt::Write as _;

use clap::Args;
use gatewright::likely::offer;
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
        Some(name) => {
            let Some(rule) = Rule::named(name) else {
                let offer = offer(name, RULES.iter().map(|rule| rule.name));
                return Err(Failure::Usage(format!("there is no rule {name}{offer}\n{}", list().trim_end())));
            };
            rule.to_text()
        }
        None => list(),
    };
    places::write(&text, None)?;
    Ok(0)
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
    text
}
