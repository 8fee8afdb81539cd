//! Tables of the measurements, for the terminal and for docs/benchmarks.md.

use std::fmt::Write as _;

use super::figures::Samples;
use super::measured::Measured;
use super::rows::Target;

/// A time, with three digits.
pub(super) fn microseconds(value: f64) -> String {
    match value {
        value if value >= 100_000.0 => format!("{:.0} ms", value / 1000.0),
        value if value >= 10_000.0 => format!("{:.1} ms", value / 1000.0),
        value if value >= 100.0 => format!("{value:.0} µs"),
        value if value >= 10.0 => format!("{value:.1} µs"),
        value => format!("{value:.2} µs"),
    }
}

/// A fraction or multiple of another's time: `1/14.2` or `2.3`.
fn times(ratio: f64) -> String {
    let digits = |value: f64| match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value => format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    };
    if ratio < 1.0 { format!("1/{}", digits(1.0 / ratio)) } else { digits(ratio) }
}

/// The row with all its ways, and its targets below.
pub(super) fn of_row(measured: &Measured<'_>) -> String {
    let mut text = format!(
        "| {} | CPU time | spread | wall time | peak | ours / this |\n|---|---|---|---|---|---|\n",
        measured.row.title
    );
    let ours = measured.turns.first().map_or(f64::NAN, |turn| turn.samples.cpu_us());
    for turn in &measured.turns {
        let samples = &turn.samples;
        let _ = writeln!(
            text,
            "| {} | {} | ± {:.0} % | {} | {:.0} MiB | {} |",
            turn.name,
            microseconds(samples.cpu_us()),
            samples.spread() * 100.0,
            microseconds(samples.wall_us()),
            samples.peak_mib(),
            times(ours / samples.cpu_us()),
        );
    }
    for line in verdicts(measured) {
        let _ = writeln!(text, "\n{}: {}, {}", line.target, line.found, line.verdict());
    }
    text
}

/// A target, and whether it was met.
pub(super) struct TargetResult {
    pub(super) target: String,
    pub(super) found: String,
    is_met: bool,
}

impl TargetResult {
    /// A single word.
    pub(super) fn verdict(&self) -> &'static str {
        if self.is_met { "met" } else { "**missed**" }
    }
}

/// The targets of a row whose peers were measured.
pub(super) fn verdicts(measured: &Measured<'_>) -> Vec<TargetResult> {
    let Some(ours) = measured.of("ours") else { return Vec::new() };
    measured.row.targets.iter().filter_map(|target| verdict(target, ours, measured)).collect()
}

fn verdict(target: &Target, ours: &Samples, measured: &Measured<'_>) -> Option<TargetResult> {
    let at_most = |text: String, found: String, value: f64, bound: f64| {
        Some(TargetResult { target: text, found, is_met: value <= bound })
    };
    let wall = |samples: &Samples| samples.wall_us();
    match *target {
        Target::Times(bound, of) => {
            let ratio = ours.cpu_us() / measured.of(of)?.cpu_us();
            at_most(format!("≤ {} × {of}", times(bound)), times(ratio), ratio, bound)
        }
        Target::WallTimes(bound, of) => {
            let ratio = wall(ours) / wall(measured.of(of)?);
            at_most(format!("≤ {} × {of}, wall time", times(bound)), times(ratio), ratio, bound)
        }
        Target::Rate(bound) => {
            let rate = ours.bytes() / ours.cpu_us() / 1000.0;
            at_most(format!("≥ {bound} GB/s per core"), format!("{rate:.2} GB/s"), -rate, -bound)
        }
        Target::WallRate(bound) => {
            let rate = ours.bytes() / wall(ours) / 1000.0;
            at_most(format!("≥ {bound} GB/s, wall time"), format!("{rate:.2} GB/s"), -rate, -bound)
        }
        Target::MillisecondsMore(bound, than) => {
            let more = (ours.cpu_us() - measured.of(than)?.cpu_us()) / 1000.0;
            at_most(format!("≤ {bound} ms over {than}"), format!("{more:.1} ms"), more, bound)
        }
        Target::MebibytesMore(bound, than) => {
            let more = ours.peak_mib() - measured.of(than)?.peak_mib();
            at_most(format!("≤ {bound} MiB over {than}"), format!("{more:.1} MiB"), more, bound)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_significant_digits() {
        for (value, shown) in [
            (0.85, "0.85 µs"),
            (41.26, "41.3 µs"),
            (9876.0, "9876 µs"),
            (23_456.0, "23.5 ms"),
            (1_047_000.0, "1047 ms"),
        ] {
            assert_eq!(microseconds(value), shown);
        }
    }

    #[test]
    fn ratio_below_one_is_written_as_a_fraction() {
        assert_eq!(
            (times(1.0 / 14.0), times(2.5), times(1.0 / 300.0)),
            ("1/14".into(), "2.5".into(), "1/300".into())
        );
    }
}
