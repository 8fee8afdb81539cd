//! What came of the scenarios: a table of clients and upstreams, and every failure in full.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use indexmap::{IndexMap, IndexSet};
use serde::Deserialize;

/// A line of a player.
#[derive(Deserialize)]
pub(super) struct Row {
    pub(super) upstream: String,
    pub(super) client: String,
    pub(super) scenario: String,
    /// Why it was not played.
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
}

#[derive(Default)]
pub(super) struct Outcomes {
    upstreams: IndexSet<String>,
    scenarios: IndexSet<String>,
    clients: IndexMap<String, IndexMap<String, Cell>>,
    failures: Vec<String>,
    /// By reason.
    skipped: BTreeMap<String, usize>,
}

impl Outcomes {
    /// Reads what a player printed.
    pub(super) fn read(&mut self, language: &str, lines: &str) -> Result<()> {
        for line in lines.lines() {
            let mut row: Row =
                serde_json::from_str(line).with_context(|| format!("a player printed {line}"))?;
            row.client = format!("{language}: {}", row.client);
            self.add(row);
        }
        Ok(())
    }

    pub(super) fn add(&mut self, row: Row) {
        let Row { upstream, client, scenario, skipped, failed } = row;
        self.upstreams.insert(upstream.clone());
        self.scenarios.insert(scenario.clone());
        let cells = self.clients.entry(client.clone()).or_default();
        let cell = cells.entry(upstream.clone()).or_default();
        if let Some(reason) = skipped {
            *self.skipped.entry(format!("{client}, {scenario}: {reason}")).or_default() += 1;
            return;
        }
        cell.played += 1;
        match failed {
            None => cell.passed += 1,
            Some(failure) => self.failures.push(format!("{upstream} / {client} / {scenario}: {failure}")),
        }
    }

    /// Prints everything. Errors: a scenario failed.
    pub(super) fn judge(&self) -> Result<()> {
        eprintln!("    scenarios: {}", self.scenarios.iter().cloned().collect::<Vec<_>>().join(", "));
        let width = self.clients.keys().map(String::len).max().unwrap_or_default();
        let upstreams = self.upstreams.iter();
        eprintln!("    {:width$}  {}", "", upstreams.cloned().collect::<Vec<_>>().join("  "));
        for (client, cells) in &self.clients {
            eprint!("    {client:width$}");
            for upstream in &self.upstreams {
                let shown = match cells.get(upstream) {
                    Some(Cell { passed, played }) if passed == played => passed.to_string(),
                    Some(Cell { passed, played }) => format!("{passed}/{played}"),
                    None => "-".to_owned(),
                };
                eprint!("  {shown:>width$}", width = upstream.len());
            }
            eprintln!();
        }
        for (reason, count) in &self.skipped {
            eprintln!("    not played, {count} times: {reason}");
        }
        if !self.failures.is_empty() {
            bail!("{} scenarios failed:\n{}", self.failures.len(), self.failures.join("\n"));
        }
        Ok(())
    }
}
