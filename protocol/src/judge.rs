//! What strict providers reject in a request: named rules in each protocol's `judge.rs`, each with its public source. If the gateway
//! writes a request that breaks a rule, its client gets a 400 for a request that it did not write.
//!
//! Protocol rules hold everywhere. Provider rules (`Rule::of_provider`) hold only at some providers or models, for which
//! upstreams have options. A request may break them without violating its protocol.

pub(crate) mod choice;
pub(crate) mod schema;
pub(crate) mod words;

use std::fmt;

use serde_json::Value;

use crate::conversation::Protocol;

/// A rule of a protocol.
pub struct Rule {
    /// The name of the rule: a property of requests that follow it.
    pub name: &'static str,
    /// Whether only some providers or models of the protocol reject it.
    pub of_provider: bool,
    check: fn(&Value, &mut Findings),
}

impl Rule {
    /// A rule that holds everywhere.
    pub const fn new(name: &'static str, check: fn(&Value, &mut Findings)) -> Self {
        Self { name, of_provider: false, check }
    }

    /// A rule of some providers or models.
    pub const fn of_provider(name: &'static str, check: fn(&Value, &mut Findings)) -> Self {
        Self { name, of_provider: true, check }
    }
}

/// Something a provider would reject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Name of the broken rule: a [`Rule::name`], or `object` if the request isn't an object.
    pub rule: &'static str,
    /// JSON Pointer into the request.
    pub at: String,
    /// A description of the problem, for people.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}: {}", self.rule, self.at, self.message)
    }
}

/// Collects the findings of the rules.
#[derive(Debug)]
pub struct Findings {
    rule: &'static str,
    found: Vec<Finding>,
}

impl Findings {
    /// The rule is broken at this place of the request.
    pub fn report(&mut self, at: impl Into<String>, message: impl Into<String>) {
        self.found.push(Finding { rule: self.rule, at: at.into(), message: message.into() });
    }
}

/// The rules of a protocol.
pub fn rules(protocol: Protocol) -> &'static [Rule] {
    protocol.codec().judge_rules()
}

/// What every strict provider of a protocol rejects in a request.
pub fn judge(protocol: Protocol, body: &Value) -> Vec<Finding> {
    judge_by(protocol, body, |rule| !rule.of_provider)
}

/// The same for a subset of the rules.
pub fn judge_by(protocol: Protocol, body: &Value, counts: impl Fn(&Rule) -> bool) -> Vec<Finding> {
    let mut findings = Findings { rule: "object", found: Vec::new() };
    if !body.is_object() {
        findings.report("", "a request is an object");
    }
    let body = protocol.codec().judged(body);
    for rule in rules(protocol).iter().filter(|rule| counts(rule)) {
        findings.rule = rule.name;
        (rule.check)(&body, &mut findings);
    }
    findings.found
}

#[cfg(test)]
mod tests;
