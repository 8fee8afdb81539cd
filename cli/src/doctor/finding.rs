//! The findings of a step, and their output.

use std::fmt::Write as _;

use gatewright::visible::visible;
use serde_json::{Value, json};

use crate::terminal::{BOLD, DIM, GREEN, Paint, RED, YELLOW};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FindingLevel {
    Ok,
    /// It works, but may be a mistake, or stop working soon.
    Warn,
    Fail,
    /// Not checked.
    Skip,
}

/// A finding of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// What was checked.
    pub(super) name: String,
    pub(super) verdict: FindingLevel,
    pub(super) found: String,
    /// What to do; empty if nothing.
    pub(super) advice: String,
}

impl Finding {
    pub(super) fn new(name: impl Into<String>, verdict: FindingLevel, found: impl Into<String>) -> Self {
        Self { name: name.into(), verdict, found: found.into(), advice: String::new() }
    }

    pub(super) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }
}

impl FindingLevel {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Skip => "skip",
        }
    }

    fn style(self) -> &'static str {
        match self {
            Self::Ok => GREEN,
            Self::Warn => YELLOW,
            Self::Fail => RED,
            Self::Skip => DIM,
        }
    }
}

/// A line for the finding, and one for each line of advice.
pub(super) fn text(finding: &Finding, paint: Paint) -> String {
    let Finding { name, verdict, found, advice } = finding;
    let word = paint.paint(verdict.style(), format_args!("{:4}", verdict.word()));
    let name = paint.paint(BOLD, format_args!("{:13}", visible(name)));
    let indented = |text: &str| {
        text.lines()
            .map(|line| visible(line).into_owned())
            .collect::<Vec<_>>()
            .join("\n                     ")
    };
    let mut shown = format!("{word}  {name}  {}\n", indented(found));
    if !advice.is_empty() {
        _ = writeln!(shown, "                     → {}", indented(advice));
    }
    shown
}

/// All findings, for programs.
pub(super) fn json(address: Option<&str>, findings: &[Finding]) -> Value {
    let worst = [FindingLevel::Fail, FindingLevel::Warn, FindingLevel::Ok]
        .into_iter()
        .find(|verdict| findings.iter().any(|finding| finding.verdict == *verdict));
    let of = |finding: &Finding| {
        json!({
            "name": finding.name,
            "verdict": finding.verdict.word(),
            "found": finding.found,
            "advice": Some(&finding.advice).filter(|advice| !advice.is_empty()),
        })
    };
    json!({
        "gateway": address,
        "verdict": worst.unwrap_or(FindingLevel::Ok).word(),
        "findings": findings.iter().map(of).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_prints_a_line_with_advice_below() {
        let finding =
            Finding::new("name", FindingLevel::Fail, "there is\u{1b}[2J none\nat all").advise("make one");
        assert_eq!(
            text(&finding, Paint::none()),
            "fail  name           there is\\u{1b}[2J none\n                     at all\n                     → make one\n"
        );
    }

    #[test]
    fn worst_finding_determines_the_verdict() {
        let (ok, warn) =
            (Finding::new("a", FindingLevel::Ok, ""), Finding::new("b", FindingLevel::Warn, "x").advise("y"));
        let document = json(Some("http://h"), &[ok.clone(), warn]);
        assert_eq!((&document["verdict"], &document["findings"][1]["advice"]), (&json!("warn"), &json!("y")));
        let document = json(None, &[ok]);
        assert_eq!((&document["verdict"], &document["findings"][0]["advice"]), (&json!("ok"), &Value::Null));
    }
}
