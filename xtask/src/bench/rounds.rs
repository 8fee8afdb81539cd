//! `cargo xtask bench client | stream | validate | start`: all ways of a row in turns, round after round, and how ours
//! compares with its targets. A wrong answer fails the run, a time never does.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail, ensure};

use super::compare;
use super::documents::Documents;
use super::figures::Samples;
use super::gateway::start_stub;
use super::installs::{OurPackages, Registry};
use super::measured::{BenchCase, Measured};
use super::page;
use super::programs::{Setting, measure};
use super::rows::{BenchRow, Contender, ROWS};
use super::{Settings, Subject, callgrind, table};
use crate::process::step;

/// Minimum number of rounds for a published table.
const ROUNDS: usize = 5;

/// Measures one subject.
pub(super) fn run_rounds(subject: Subject, settings: &Settings) -> Result<()> {
    let rows: Vec<_> =
        ROWS.iter().filter(|row| row.subject == subject && is_chosen(row, &settings.only)).collect();
    if rows.is_empty() {
        let titles: Vec<_> = ROWS.iter().filter(|row| row.subject == subject).map(|row| row.title).collect();
        bail!("no row contains all these words; the rows are:\n  {}", titles.join("\n  "));
    }
    let whole = settings.rounds >= ROUNDS && settings.only.is_empty() && settings.scale >= 1.0;
    if settings.write && (!whole || settings.compare.is_some()) {
        bail!(
            "docs/ only accepts complete runs: all rows with their peers, at least {ROUNDS} rounds, unscaled"
        );
    }
    if settings.callgrind {
        ensure!(subject != Subject::Start, "--callgrind can't measure startup; omit it");
        callgrind::check()?;
    }
    let here = OurPackages::here();
    here.install()?;
    let before = settings.compare.as_deref().map(compare::install).transpose()?;
    if before.is_none() {
        let ways = rows.iter().flat_map(|row| row.ways);
        let registries: BTreeSet<_> = ways.filter_map(|way| way.program.registry()).collect();
        registries.into_iter().try_for_each(Registry::install)?;
    } else {
        // The interpreter that ours runs in.
        Registry::Python.install()?;
    }
    let stub = start_stub()?;
    let setting = Setting { host: stub.host.clone(), documents: Documents::write()?, here: here.program("") };
    let mut measured: Vec<_> = rows.into_iter().map(|row| turns(row, &here, before.as_ref())).collect();
    if settings.callgrind {
        let tables = callgrind::count(&measured, &setting)?;
        return if settings.write { page::write_counts(subject, &tables) } else { Ok(()) };
    }
    for round in 0..settings.rounds {
        step(&format!("round {} of {}", round + 1, settings.rounds), || {
            measured.iter_mut().try_for_each(|row| measure_row(row, round, settings.scale, &setting))
        })?;
    }
    for row in &measured {
        eprintln!("\n{}", table::of_row(row));
    }
    if settings.write {
        page::write(subject, &measured, settings.rounds)?;
    }
    Ok(())
}

fn is_chosen(row: &BenchRow, words: &[String]) -> bool {
    let title = row.title.to_lowercase();
    words.iter().all(|word| title.contains(&word.to_lowercase()))
}

fn turns<'a>(row: &'static BenchRow, here: &'a OurPackages, before: Option<&'a OurPackages>) -> Measured<'a> {
    let turn = |way: &'static Contender, ours: &'a OurPackages, name: String| BenchCase {
        way,
        ours,
        name,
        samples: Samples::default(),
    };
    let mut turns = Vec::new();
    for way in row.ways {
        let Some(before) = before else {
            turns.push(turn(way, here, way.name.to_owned()));
            continue;
        };
        if way.is_ours() {
            turns.push(turn(way, here, way.name.to_owned()));
            turns.push(turn(way, before, way.name.replacen("ours", &before.name, 1)));
        }
    }
    Measured { row, turns }
}

fn measure_row(row: &mut Measured<'_>, round: usize, scale: f64, setting: &Setting) -> Result<()> {
    let mut answers = BTreeMap::new();
    let length = row.turns.len();
    for place in 0..length {
        // The first to run changes from round to round.
        let turn = &mut row.turns[(place + round) % length];
        let title = row.row.title;
        let figure = measure(turn.way, turn.ours, setting, scaled(turn.way.count, scale))
            .map_err(|error| error.context(format!("{title}: {}", turn.name)))?;
        eprintln!("    {title}: {} {}", turn.name, table::microseconds(figure.cpu_us));
        // Streams of another length give another answer.
        let expected = answers.entry(turn.way.subject()).or_insert(figure.answer);
        ensure!(
            *expected == figure.answer,
            "{title}: {} read something different from the others: {} instead of {expected}",
            turn.name,
            figure.answer
        );
        turn.samples.push(figure);
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of that size")]
fn scaled(count: u32, scale: f64) -> u32 {
    // A crowd needs at least one hundred.
    let least = count.min(if count >= 300 { 100 } else { 1 });
    ((f64::from(count) * scale) as u32).max(least)
}
