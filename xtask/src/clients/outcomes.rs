//! The outcomes of the scenarios: a table of clients and upstreams, and every failure in full.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use indexmap::{IndexMap, IndexSet};
use serde::Deserialize;

use super::expected::Expected;

/// A line of a player.
#[derive(Deserialize)]
pub(super) struct OutcomeRow {
    pub(super) upstream: String,
    pub(super) client: String,
    pub(super) scenario: String,
    /// It is only run when everything is.
    #[serde(default)]
    pub(super) omitted: bool,
    /// Why it was not run.
    #[serde(default)]
    pub(super) skipped: Option<String>,
    /// What went wrong.
    #[serde(default)]
    pub(super) failed: Option<String>,
}

/// The outcomes of one client with one upstream.
#[derive(Default)]
struct Cell {
    passed: usize,
    played: usize,
    skipped: usize,
    omitted: usize,
}

#[derive(Default)]
pub(super) struct Outcomes {
    upstreams: IndexSet<String>,
    scenarios: IndexSet<String>,
    clients: IndexMap<String, IndexMap<String, Cell>>,
    /// By client and scenario: at how many upstreams it was run.
    played: BTreeMap<(String, String), usize>,
    failures: Vec<String>,
    /// By client, scenario and reason.
    skipped: BTreeMap<String, usize>,
}

impl Outcomes {
    /// Parses the output of a player.
    pub(super) fn read(&mut self, language: &str, lines: &str) -> Result<()> {
        for line in lines.lines() {
            let mut row: OutcomeRow =
                serde_json::from_str(line).with_context(|| format!("a player printed {line}"))?;
            row.client = format!("{language}: {}", row.client);
            self.add(row);
        }
        Ok(())
    }

    pub(super) fn add(&mut self, row: OutcomeRow) {
        let OutcomeRow { upstream, client, scenario, omitted, skipped, failed } = row;
        self.upstreams.insert(upstream.clone());
        self.scenarios.insert(scenario.clone());
        let cells = self.clients.entry(client.clone()).or_default();
        let cell = cells.entry(upstream.clone()).or_default();
        if let Some(reason) = skipped {
            cell.skipped += 1;
            *self.skipped.entry(format!("{client}, {scenario}: {reason}")).or_default() += 1;
            return;
        }
        let times = self.played.entry((client.clone(), scenario.clone())).or_default();
        if omitted {
            cell.omitted += 1;
            return;
        }
        cell.played += 1;
        *times += 1;
        match failed {
            None => cell.passed += 1,
            Some(failure) => self.failures.push(format!("{upstream} / {client} / {scenario}: {failure}")),
        }
    }

    /// Records a problem outside of the scenarios.
    pub(super) fn complain(&mut self, failure: String) {
        self.failures.push(failure);
    }

    /// Prints everything. `share`: each scenario is run at one upstream out of this many.
    ///
    /// # Errors
    /// If a scenario failed, if what was run or skipped differs from the expectations, or if a client ran a scenario at none
    /// of its upstreams, or none at an upstream.
    pub(super) fn judge(&self, expected: &Expected, share: usize) -> Result<()> {
        self.print();
        let mut wrong = self.failures.clone();
        let rows = |cells: &IndexMap<String, Cell>| {
            cells.values().map(|cell| cell.played + cell.skipped + cell.omitted).sum()
        };
        let rows = self.clients.iter().map(|(client, cells)| (client.clone(), rows(cells))).collect();
        wrong.extend(differences("rows", &expected.rows, &rows));
        wrong.extend(differences("skipped", &expected.skipped, &self.skipped));
        for ((client, scenario), _) in self.played.iter().filter(|(_, times)| **times == 0) {
            wrong.push(format!("{client} played {scenario} nowhere"));
        }
        for (client, cells) in &self.clients {
            for (upstream, _) in cells.iter().filter(|(_, cell)| cell.played == 0) {
                wrong.push(format!("{client} played nothing at {upstream}"));
            }
        }
        let omitted = |cell: &Cell| share == 1 && cell.omitted > 0;
        if self.clients.values().flat_map(IndexMap::values).any(omitted) {
            wrong.push("scenarios were left out".to_owned());
        }
        if !wrong.is_empty() {
            bail!("{} scenarios or numbers are wrong:\n{}", wrong.len(), wrong.join("\n"));
        }
        Ok(())
    }

    fn print(&self) {
        eprintln!("    scenarios: {}", self.scenarios.iter().cloned().collect::<Vec<_>>().join(", "));
        let width = self.clients.keys().map(String::len).max().unwrap_or_default();
        let upstreams = self.upstreams.iter();
        eprintln!("    {:width$}  {}", "", upstreams.cloned().collect::<Vec<_>>().join("  "));
        for (client, cells) in &self.clients {
            eprint!("    {client:width$}");
            for upstream in &self.upstreams {
                let shown = match cells.get(upstream) {
                    Some(Cell { passed, played, .. }) if passed == played => passed.to_string(),
                    Some(Cell { passed, played, .. }) => format!("{passed}/{played}"),
                    None => "-".to_owned(),
                };
                eprint!("  {shown:>width$}", width = upstream.len());
            }
            eprintln!();
        }
        for (reason, count) in &self.skipped {
            eprintln!("    not played, {count} times: {reason}");
        }
    }
}

/// Counts that differ from the expectations, in words.
fn differences(
    what: &str,
    expected: &BTreeMap<String, usize>,
    found: &BTreeMap<String, usize>,
) -> Vec<String> {
    let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let count = |counts: &BTreeMap<String, usize>, name| counts.get(name).copied().unwrap_or_default();
    let numbers = names.into_iter().map(|name| (name, count(expected, name), count(found, name)));
    numbers
        .filter(|(_, expected, found)| expected != found)
        .map(|(name, expected, found)| format!("{what}: {found} instead of {expected} times: {name}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSED: &str = r#"{"upstream": "simulator", "client": "a", "scenario": "chat"}"#;
    const SKIPPED: &str =
        r#"{"upstream": "simulator", "client": "a", "scenario": "image", "skipped": "it is blind"}"#;
    const FAILED: &str =
        r#"{"upstream": "simulator", "client": "a", "scenario": "tools", "failed": "no call"}"#;

    /// Evaluates the output of a player in which a client `a` runs one scenario and skips another.
    fn judged(lines: &[&str]) -> Result<(), String> {
        judged_with(lines, 1)
    }

    fn judged_with(lines: &[&str], share: usize) -> Result<(), String> {
        let mut outcomes = Outcomes::default();
        outcomes.read("Node", &lines.join("\n")).expect("rows");
        let expected = Expected {
            rows: BTreeMap::from([("Node: a".to_owned(), 2)]),
            skipped: BTreeMap::from([("Node: a, image: it is blind".to_owned(), 1)]),
        };
        outcomes.judge(&expected, share).map_err(|error| error.to_string())
    }

    #[test]
    fn expected_outcomes_pass() {
        assert_eq!(judged(&[PASSED, SKIPPED]), Ok(()));
    }

    #[test]
    fn missing_client_fails() {
        let error = judged(&[]).expect_err("nothing was played");
        assert!(error.contains("rows: 0 instead of 2 times: Node: a"), "{error}");
    }

    #[test]
    fn unexpected_client_fails() {
        let other = PASSED.replace(r#""a""#, r#""b""#);
        let error = judged(&[PASSED, SKIPPED, &other]).expect_err("another client");
        assert!(error.contains("rows: 1 instead of 0 times: Node: b"), "{error}");
    }

    #[test]
    fn unexpected_skip_fails() {
        let skipped = PASSED.replace('}', r#", "skipped": "there is no model"}"#);
        let error = judged(&[&skipped, SKIPPED]).expect_err("everything is skipped");
        assert!(error.contains("skipped: 1 instead of 0 times: Node: a, chat: there is no model"), "{error}");
    }

    #[test]
    fn skip_with_another_reason_fails() {
        let error = judged(&[PASSED, &SKIPPED.replace("blind", "deaf")]).expect_err("another reason");
        assert!(error.contains("1 instead of 0 times: Node: a, image: it is deaf"), "{error}");
        assert!(error.contains("0 instead of 1 times: Node: a, image: it is blind"), "{error}");
    }

    #[test]
    fn obsolete_skip_fails() {
        let played = SKIPPED.replace(r#", "skipped": "it is blind""#, "");
        let error = judged(&[PASSED, &played]).expect_err("it is played");
        assert!(error.contains("skipped: 0 instead of 1 times: Node: a, image: it is blind"), "{error}");
    }

    #[test]
    fn short_run_may_omit_scenarios_at_some_upstreams() {
        let elsewhere = PASSED.replace("simulator", "chat");
        let omitted = elsewhere.replace('}', r#", "omitted": true}"#);
        let image = SKIPPED.replace(r#", "skipped": "it is blind""#, "").replace("simulator", "chat");
        let lines = [PASSED, SKIPPED, &omitted, &image];
        let rows = |error: &str| error.replace("rows: 4 instead of 2 times: Node: a", "");
        let error = judged_with(&lines, 4).expect_err("two more rows");
        assert_eq!(rows(&error).trim(), "1 scenarios or numbers are wrong:");
        let error = judged_with(&lines, 1).expect_err("a full run");
        assert!(error.contains("scenarios were left out"), "{error}");
    }

    #[test]
    fn scenario_omitted_at_every_upstream_fails() {
        let omitted = PASSED.replace('}', r#", "omitted": true}"#);
        let error = judged_with(&[&omitted, SKIPPED], 4).expect_err("nothing was played");
        assert!(error.contains("Node: a played chat nowhere"), "{error}");
        assert!(error.contains("Node: a played nothing at simulator"), "{error}");
    }

    #[test]
    fn failed_scenario_fails() {
        let error = judged(&[FAILED, SKIPPED]).expect_err("a failure");
        assert!(error.contains("simulator / Node: a / tools: no call"), "{error}");
    }
}
