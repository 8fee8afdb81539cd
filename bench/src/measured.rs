//! What the measured Rust programs share: `PROGRAM WORK MODEL COUNT HOST` does one kind of work `COUNT` times and prints its cost
//! as one line of JSON. bench/python/measured.py and bench/node/measured.mjs are its counterparts.

#![expect(clippy::print_stdout, reason = "the line is what xtask reads")]

use std::fs;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use cpu_time::ProcessTime;
use serde_json::json;

/// The work of a measured program.
#[derive(Debug, Clone)]
pub struct Task {
    /// `ask` for a whole response or `read` a stream.
    pub work: String,
    /// The requested model, which tells the stub what to answer.
    pub model: String,
    /// The number of requests or streams.
    pub count: u64,
    /// `host:port` of the stub.
    pub host: String,
    /// Whether one thread does everything, instead of one thread per core.
    pub one_thread: bool,
}

impl Task {
    /// Parses the program's arguments. `ask-one` is `ask` on one thread.
    pub fn from_arguments() -> Result<Self> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let [work, model, count, host] = <[String; 4]>::try_from(arguments)
            .map_err(|_| anyhow::anyhow!("the arguments are: WORK MODEL COUNT HOST"))?;
        let (kind, one_thread) = work.strip_suffix("-one").map_or((&*work, false), |kind| (kind, true));
        Ok(Self { work: kind.to_owned(), model, count: count.parse()?, host, one_thread })
    }

    /// The base URL of the stub.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.host)
    }

    /// Runs a future on the requested runtime.
    pub fn block_on<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let mut builder = if self.one_thread {
            tokio::runtime::Builder::new_current_thread()
        } else {
            tokio::runtime::Builder::new_multi_thread()
        };
        builder.enable_all().build()?.block_on(work)
    }

    /// Does the work `count` times and prints its cost. `once` returns what was read as a number, which must be the same each
    /// time: see [`sum`].
    pub async fn measure(&self, once: impl AsyncFnMut() -> Result<u64>) -> Result<()> {
        self.measure_bytes(0, once).await
    }

    /// The same, for this many bytes each time.
    pub async fn measure_bytes(
        &self,
        bytes: usize,
        mut once: impl AsyncFnMut() -> Result<u64>,
    ) -> Result<()> {
        let expected = once().await?;
        for _ in 0..self.count / 10 {
            once().await?;
        }
        let (cpu, wall) = (ProcessTime::try_now()?, Instant::now());
        for _ in 0..self.count {
            let answer = once().await?;
            ensure!(answer == expected, "{expected} was read at first, then {answer}");
        }
        let (cpu, wall) = (cpu.try_elapsed()?, wall.elapsed());
        let line = json!({
            "operations": self.count * self.chunks(),
            "cpu_us": cpu.as_secs_f64() * 1e6,
            "wall_us": wall.as_secs_f64() * 1e6,
            "peak_kb": peak_kilobytes()?,
            "answer": expected,
            "bytes": bytes,
        });
        println!("{line}");
        Ok(())
    }

    /// Operations of one stream: its chunks, as the model's name says.
    fn chunks(&self) -> u64 {
        self.model.split('-').nth(1).and_then(|chunks| chunks.parse().ok()).unwrap_or(1)
    }
}

/// The text that was read as a number: its non-empty pieces, and their bytes.
pub fn sum(text: Option<&str>) -> u64 {
    text.filter(|text| !text.is_empty()).map_or(0, |text| text.len() as u64 + 1)
}

/// Peak resident memory of this process so far.
pub fn peak_kilobytes() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).context("no VmHWM")
}
