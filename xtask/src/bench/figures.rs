//! The measurements that a program printed, and medians over many rounds.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The measurements of one way in one round.
#[derive(Clone, Copy, Default)]
pub(super) struct Figure {
    /// Processor microseconds per operation, for all threads, user and system.
    pub(super) cpu_us: f64,
    /// Wall-clock microseconds per operation.
    pub(super) wall_us: f64,
    /// Peak resident memory of the process.
    pub(super) peak_mib: f64,
    /// Bytes read per operation, if known.
    pub(super) bytes: f64,
    /// A checksum of what was read, which must not depend on the way.
    pub(super) answer: u64,
}

impl Figure {
    /// Parses the line that a program prints.
    pub(super) fn read(line: &str) -> Result<Self> {
        let figures: Value = serde_json::from_str(line).with_context(|| format!("no figures: {line:?}"))?;
        let number =
            |name: &str| figures[name].as_f64().with_context(|| format!("{name} is missing: {line}"));
        let operations = number("operations")?;
        let answer = figures["answer"].as_u64().unwrap_or_default();
        ensure!(operations > 0.0 && answer > 0, "nothing was read: {line}");
        Ok(Self {
            cpu_us: number("cpu_us")? / operations,
            wall_us: number("wall_us")? / operations,
            peak_mib: number("peak_kb")? / 1024.0,
            bytes: figures["bytes"].as_f64().unwrap_or_default(),
            answer,
        })
    }
}

/// The rounds of one way.
#[derive(Default)]
pub(super) struct Samples(Vec<Figure>);

impl Samples {
    pub(super) fn push(&mut self, figure: Figure) {
        self.0.push(figure);
    }

    /// Median of one figure over the rounds.
    pub(super) fn median(&self, of: impl Fn(&Figure) -> f64) -> f64 {
        let mut values: Vec<f64> = self.0.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        match values.len() {
            0 => f64::NAN,
            odd if odd % 2 == 1 => values[middle],
            _ => f64::midpoint(values[middle - 1], values[middle]),
        }
    }

    /// Half the way from the lowest to the highest processor time, as a share of the median.
    pub(super) fn spread(&self) -> f64 {
        let all = || self.0.iter().map(|figure| figure.cpu_us);
        let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        (high - low) / 2.0 / self.cpu_us()
    }

    pub(super) fn cpu_us(&self) -> f64 {
        self.median(|figure| figure.cpu_us)
    }

    pub(super) fn wall_us(&self) -> f64 {
        self.median(|figure| figure.wall_us)
    }

    pub(super) fn peak_mib(&self) -> f64 {
        self.median(|figure| figure.peak_mib)
    }

    pub(super) fn bytes(&self) -> f64 {
        self.median(|figure| figure.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_per_operation() {
        let line = r#"{"operations": 4, "cpu_us": 8.0, "wall_us": 40, "peak_kb": 2048, "answer": 7}"#;
        let figure = Figure::read(line).expect("figures");
        assert_eq!((figure.cpu_us, figure.wall_us, figure.peak_mib), (2.0, 10.0, 2.0));
    }

    #[test]
    fn program_without_results_fails() {
        for line in ["", "{}", r#"{"operations": 1, "cpu_us": 1, "wall_us": 1, "peak_kb": 1, "answer": 0}"#] {
            assert!(Figure::read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn median_and_spread_cover_all_rounds() {
        let mut samples = Samples::default();
        for cpu_us in [4.0, 1.0, 2.0] {
            samples.push(Figure { cpu_us, ..Figure::default() });
        }
        assert_eq!((samples.cpu_us(), samples.spread()), (2.0, 0.75));
        samples.push(Figure { cpu_us: 3.0, ..Figure::default() });
        assert_eq!((samples.cpu_us(), samples.wall_us()), (2.5, 0.0));
    }
}
