//! Validates reports with our validator and with serde_json plus jsonschema in turns: the median and the best of the rounds, and
//! how many times faster ours is.
//!
//! `cargo run --release -p gatewright-bench --example validate [ROUNDS]`; `validate KIND WAY TIMES` does one thing `TIMES` times,
//! for callgrind. The kinds and ways are those of the table.

#![expect(clippy::print_stdout, reason = "what a program measures, it prints")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use gatewright_report::Validator;
use serde_json::{Value, json};

/// The minimum time of one turn of one way: short, so that some turns are not disturbed.
const TURN: Duration = Duration::from_millis(5);

/// Models of a big report.
const MANY_MODELS: usize = 900;

/// The base of the vectors that has every member.
const FULL: &str = include_str!("../../tests/vectors/report/bases/full.json");

/// Ours; ours with the report as typed values; the parser alone; the parser, and the schema applied to its result.
const WAYS: [&str; 4] = ["ours", "typed", "serde_json", "serde_json + jsonschema"];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [kind, way, times] => {
            let case = cases()?.into_iter().find(|case| case.kind == kind).context("no such kind")?;
            for _ in 0..times.parse()? {
                case.judge(way)?;
            }
            Ok(())
        }
        [] => compare(51),
        [rounds] => compare(rounds.parse()?),
        _ => bail!("say how many rounds, or: KIND WAY TIMES"),
    }
}

/// A report, and its validators.
struct Case {
    kind: &'static str,
    document: Vec<u8>,
    valid: bool,
    ours: Validator,
    theirs: jsonschema::Validator,
}

impl Case {
    fn new(kind: &'static str, document: Vec<u8>, valid: bool, ours: &Validator) -> Result<Self> {
        let schema: Value = serde_json::from_str(&ours.schema())?;
        let theirs = jsonschema::draft202012::options().should_validate_formats(true).build(&schema)?;
        Ok(Self { kind, document, valid, ours: ours.clone(), theirs })
    }

    fn judge(&self, way: &str) -> Result<bool> {
        let document = black_box(self.document.as_slice());
        Ok(match way {
            "ours" => self.ours.check(document).valid,
            "typed" => black_box(self.ours.validate(document)).valid,
            "serde_json" => black_box(serde_json::from_slice::<Value>(document)).is_ok() && self.valid,
            "serde_json + jsonschema" => self.theirs.is_valid(&serde_json::from_slice(document)?),
            _ => bail!("the ways are {}", WAYS.join(", ")),
        })
    }

    /// The time that the document takes.
    fn turn(&self, way: &str) -> Result<f64> {
        let started = Instant::now();
        let mut times = 0;
        while times == 0 || started.elapsed() < TURN {
            for _ in 0..8 {
                black_box(self.judge(way)?);
            }
            times += 8;
        }
        Ok((started.elapsed() / times).as_secs_f64())
    }
}

fn compare(rounds: usize) -> Result<()> {
    println!("| report | KB | way | µs | × ours | best µs | best MB/s |\n|---|---|---|---|---|---|---|");
    for case in cases()? {
        let mut times = [(); WAYS.len()].map(|()| Vec::new());
        for way in WAYS {
            ensure!(case.judge(way)? == case.valid, "{way} judges the {} report wrongly", case.kind);
        }
        for _ in 0..rounds {
            for (way, times) in WAYS.iter().zip(&mut times) {
                times.push(case.turn(way)?);
            }
        }
        for times in &mut times {
            times.sort_by(f64::total_cmp);
        }
        let median = |times: &[f64]| times[times.len() / 2];
        let ours = median(&times[0]);
        let bytes = f64::from(u32::try_from(case.document.len())?);
        for (way, times) in WAYS.iter().zip(&times) {
            let (time, best, kilobytes) = (median(times), times[0], bytes / 1e3);
            let (ratio, rate) = (time / ours, bytes / best / 1e6);
            let (time, best) = (time * 1e6, best * 1e6);
            println!(
                "| {} | {kilobytes:.1} | {way} | {time:.2} | {ratio:.1} | {best:.2} | {rate:.0} |",
                case.kind
            );
        }
    }
    Ok(())
}

/// A report of the usual size, the same with a violation, the same without white space, and one with many models.
fn cases() -> Result<Vec<Case>> {
    let usual_models = ["model-sol", "model-terra", "model-luna"].map(str::to_owned);
    let many_models: Vec<String> = (0..MANY_MODELS).map(|index| format!("model-{index}")).collect();
    let standard = Validator::default();
    let own = Validator::builder().models(&many_models).build();
    let usual = report(&usual_models, &[])?;
    let mut invalid = usual.clone();
    invalid["checks"][1]["layer"] = json!("apis");
    let big = report(&many_models, &many_models)?;
    Ok(vec![
        Case::new("usual", serde_json::to_vec_pretty(&usual)?, true, &standard)?,
        Case::new("invalid", serde_json::to_vec_pretty(&invalid)?, false, &standard)?,
        Case::new("compact", serde_json::to_vec(&usual)?, true, &standard)?,
        Case::new("big", serde_json::to_vec_pretty(&big)?, true, &own)?,
    ])
}

/// A report with every member, for these models; `replaced` has the models that replace the standard ones.
fn report(models: &[String], replaced: &[String]) -> Result<Value> {
    let mut report: Value = serde_json::from_str(FULL)?;
    if !replaced.is_empty() {
        report["configuration"]["models"] = json!(replaced);
        let checks = report["checks"].as_array_mut().context("a report has checks")?;
        checks.retain(|check| check["model"].is_null());
    }
    let checks = report["checks"].as_array_mut().context("a report has checks")?;
    for model in models {
        for id in ["model_access", "responses_text", "responses_stream", "responses_function_tool"] {
            let cell = |check: &Value| check["id"] == id && check["model"] == model.as_str();
            if !replaced.is_empty() || !checks.iter().any(cell) {
                checks.push(check(id, model));
            }
        }
    }
    let failed = checks.iter().any(|check| check["status"] == "fail");
    for (name, status) in [("passed", "pass"), ("failed", "fail"), ("skipped", "skip")] {
        let checks = report["checks"].as_array().context("a report has checks")?;
        report["summary"][name] = checks.iter().filter(|check| check["status"] == status).count().into();
    }
    report["overall_status"] = if failed { json!("fail") } else { json!("pass") };
    Ok(report)
}

fn check(id: &str, model: &str) -> Value {
    json!({
        "id": id, "layer": "api", "model": model, "status": "pass", "duration_ms": 1234, "http_status": 200,
        "reported_model": model, "response_id": "resp_0123456789abcdef", "output_verified": true,
        "usage": {"input_tokens": 12, "output_tokens": 34, "total_tokens": 46, "cached_tokens": null,
            "cache_write_tokens": null, "reasoning_tokens": 0},
    })
}
