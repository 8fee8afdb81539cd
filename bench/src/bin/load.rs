//! Sends load to a gateway and prints its measurements as one JSON object.

#![expect(clippy::print_stdout, reason = "the figures are its output")]

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::{Parser, ValueEnum};
use gatewright_bench::connection::{Connection, Timing, request};
use gatewright_bench::process::{cpu_us, memory};
use serde_json::{Value, json};

#[derive(Parser)]
struct Arguments {
    /// host:port
    #[arg(long)]
    host: String,
    #[arg(long, default_value = "/v1/chat/completions")]
    path: String,
    #[arg(long, default_value = "")]
    key: String,
    /// Headers, each NAME: VALUE
    #[arg(long)]
    header: Vec<String>,
    #[arg(long, default_value = "plain")]
    model: String,
    /// The body as JSON, in place of a request of chat; `stream` is added to it where streams are measured
    #[arg(long)]
    body: Option<String>,
    /// The gateway's process
    #[arg(long)]
    pid: u32,
    #[arg(long)]
    measure: Measure,
    /// Requests of one at a time; streams at once of a crowd
    #[arg(long, default_value_t = 1000)]
    count: usize,
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Measure {
    /// One request after the other: latency
    Latency,
    /// 16 connections for some seconds: requests a second
    Throughput,
    /// One stream after the other: time to the first byte
    FirstByte,
    /// One stream: processor time of a chunk
    Chunks,
    /// Many streams at once: memory and stalls
    Crowd,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let stream = matches!(arguments.measure, Measure::FirstByte | Measure::Chunks | Measure::Crowd);
    let mut body = match &arguments.body {
        Some(given) => serde_json::from_str(given).context("--body is no JSON")?,
        None => json!({
            "model": arguments.model,
            "max_tokens": 4096,
            "messages": [{ "role": "user", "content": "Tell me about rivers, in a sentence or two." }],
        }),
    };
    if stream {
        body["stream"] = Value::Bool(true);
    }
    let bearer = format!("Bearer {}", arguments.key);
    let mut headers = vec![("authorization", bearer.as_str())];
    for header in &arguments.header {
        headers.push(header.split_once(": ").context("a header has the form NAME: VALUE")?);
    }
    let request = request(&arguments.host, &arguments.path, &headers, &body.to_string());
    let figures = match arguments.measure {
        Measure::Latency => latency(&arguments, &request, |timing| timing.whole).await?,
        Measure::FirstByte => latency(&arguments, &request, |timing| timing.first_byte).await?,
        Measure::Throughput => throughput(&arguments, &request).await?,
        Measure::Chunks => chunks(&arguments, &request).await?,
        Measure::Crowd => crowd(&arguments, &request).await?,
    };
    println!("{figures}");
    Ok(())
}

async fn timed(connection: &mut Connection, request: &[u8]) -> Result<Timing> {
    let timing = connection.ask(request).await?;
    if timing.status != 200 {
        bail!("the gateway answered {}", timing.status);
    }
    Ok(timing)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

async fn latency(arguments: &Arguments, request: &[u8], of: fn(&Timing) -> Duration) -> Result<Value> {
    let mut connection = Connection::open(&arguments.host).await?;
    for _ in 0..arguments.count / 10 {
        timed(&mut connection, request).await?;
    }
    let before = cpu_us(arguments.pid)?;
    let mut times = Vec::new();
    for _ in 0..arguments.count {
        times.push(of(&timed(&mut connection, request).await?));
    }
    let spent = cpu_us(arguments.pid)? - before;
    times.sort_unstable();
    let at = |share: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a place in a short list"
        )]
        #[expect(clippy::cast_precision_loss, reason = "a short list")]
        let place = (times.len() as f64 * share) as usize;
        micros(times[place.min(times.len() - 1)])
    };
    #[expect(clippy::cast_precision_loss, reason = "a short list")]
    let each = spent / times.len() as f64;
    Ok(json!({ "p50_us": at(0.5), "p99_us": at(0.99), "cpu_us": each }))
}

async fn throughput(arguments: &Arguments, request: &[u8]) -> Result<Value> {
    let before = cpu_us(arguments.pid)?;
    let started = Instant::now();
    let length = Duration::from_secs_f64(arguments.seconds);
    let workers: Vec<_> = (0..16)
        .map(|_| {
            let (host, request) = (arguments.host.clone(), request.to_vec());
            tokio::spawn(async move {
                let mut connection = Connection::open(&host).await?;
                let mut count = 0_u32;
                while started.elapsed() < length {
                    timed(&mut connection, &request).await?;
                    count += 1;
                }
                anyhow::Ok(count)
            })
        })
        .collect();
    let mut count = 0;
    for worker in workers {
        count += worker.await??;
    }
    let took = started.elapsed().as_secs_f64();
    let spent = cpu_us(arguments.pid)? - before;
    let count = f64::from(count);
    Ok(json!({ "requests_s": count / took, "cpu_us": spent / count, "memory_mb": megabytes(arguments.pid)? }))
}

#[expect(clippy::cast_precision_loss, reason = "far below the precision of a float")]
fn megabytes(pid: u32) -> Result<f64> {
    Ok(memory(pid)? as f64 / 1e6)
}

async fn chunks(arguments: &Arguments, request: &[u8]) -> Result<Value> {
    let mut connection = Connection::open(&arguments.host).await?;
    timed(&mut connection, request).await?;
    let before = cpu_us(arguments.pid)?;
    let mut whole = Duration::ZERO;
    for _ in 0..arguments.count {
        whole += timed(&mut connection, request).await?.whole;
    }
    let spent = cpu_us(arguments.pid)? - before;
    let of_model = arguments.model.split('-').nth(1).and_then(|number| number.parse::<u32>().ok());
    let chunks = f64::from(of_model.context("the model says how many chunks")?);
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let total = chunks * arguments.count as f64;
    Ok(json!({ "cpu_us": spent / total, "wall_us": micros(whole) / total }))
}

async fn crowd(arguments: &Arguments, request: &[u8]) -> Result<Value> {
    let streams: Vec<_> = (0..arguments.count)
        .map(|_| {
            let (host, request) = (arguments.host.clone(), request.to_vec());
            tokio::spawn(async move { timed(&mut Connection::open(&host).await?, &request).await })
        })
        .collect();
    let mut most = megabytes(arguments.pid)?;
    while streams.iter().any(|stream| !stream.is_finished()) {
        tokio::time::sleep(Duration::from_millis(50)).await;
        most = most.max(megabytes(arguments.pid)?);
    }
    let mut gap = Duration::ZERO;
    for stream in streams {
        gap = gap.max(stream.await??.longest_gap);
    }
    Ok(json!({ "memory_mb": most, "longest_gap_ms": micros(gap) / 1000.0 }))
}
