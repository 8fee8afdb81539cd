//! What requests and tasks cost gateways, their database and their counters, in CPU time, with one to three gateways at work, and
//! with one again: extra cost in the last round comes not from the gateways but from the amount of data in the database by then.
//! No faults occur meanwhile. As all of them share the cores of this machine, throughput on separate machines can be derived from
//! these times.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures_util::future::join_all;
use tokio::runtime::Runtime;

use crate::clients::{Clients, DEFAULT};
use crate::history::{ALONE, History, Limits, Outcome};
use crate::world::{ADMIN_KEY, KEY, World};

/// How long texts are requested, and how long the system idles.
const TIME: Duration = Duration::from_secs(10);
/// The number of clients per gateway.
const CLIENTS: usize = 8;
/// The number of videos per gateway, and how many at once.
const VIDEOS: usize = 120;
const AT_ONCE: usize = 12;
/// How long all videos together may take.
const PATIENCE: Duration = Duration::from_mins(3);

/// A key with limits that are never reached: each request uses the counters.
const LIMITED: &str = "limited";
const LIMITS: Limits = Limits {
    tokens_per_day: Some(PLENTY),
    cost_per_day: None,
    requests_per_minute: Some(PLENTY),
    tokens_per_minute: Some(PLENTY),
    concurrent_requests: Some(1_000),
};
const PLENTY: u64 = 1_000_000_000;

/// The programs of the database and of the counters.
const DATABASE: &[&str] = &["postgres"];
const COUNTERS: &[&str] = &["redis-server", "valkey-server"];

/// The cost of some work.
struct Took {
    count: usize,
    wall: Duration,
    /// Requests to the bucket.
    stored: u64,
    used: Used,
}

/// CPU time: of the gateways at work, of the database, and of the counters.
#[derive(Debug, Clone, Copy)]
struct Used {
    gateways: Duration,
    database: Duration,
    counters: Duration,
}

impl Took {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    fn each_ms(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e3 / self.count.max(1) as f64
    }

    #[expect(clippy::cast_precision_loss, reason = "for people")]
    fn stored_each(&self) -> f64 {
        self.stored as f64 / self.count.max(1) as f64
    }
}

/// Measures, and prints a table.
pub(crate) fn measure(program: &Path) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("gw-figures-").tempdir()?;
    let history = Arc::new(History::create(&folder.path().join("history.jsonl"))?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut world = World::start(program, folder.path(), TIME, &history, &runtime, false)?;
    let clients = Arc::new(Clients::new(history, world.urls(), KEY, ADMIN_KEY)?);
    let bench = Bench { world: &world, clients, runtime: &runtime };
    // Connections and caches first.
    bench.texts(ALONE, DEFAULT, TIME / 5)?;
    let made = runtime.block_on(bench.clients.create_key(0, LIMITED, LIMITS));
    if !matches!(made, Outcome::Done) {
        bail!("a key is not made: {made:?}");
    }
    let idle = bench.took(ALONE, || {
        std::thread::sleep(TIME);
        Ok(0)
    })?;
    let a_second = |time: Duration| time.as_secs_f64() * 1e3 / idle.wall.as_secs_f64();
    eprintln!(
        "idle, {ALONE} gateways, per second: {:.2} ms of a gateway, {:.2} ms of the database and {:.2} ms of the counters",
        a_second(idle.used.gateways) / f64::from(u32::try_from(ALONE)?),
        a_second(idle.used.database),
        a_second(idle.used.counters),
    );
    eprintln!(
        "| work | gateways | count | per second | gateway ms each | database ms each | counters ms each | bucket requests each |"
    );
    eprintln!("|---|---|---|---|---|---|---|---|");
    for (nodes, when) in (1..=ALONE).map(|nodes| (nodes, "")).chain([(1, ", at the end")]) {
        for (work, took) in [
            ("chats", bench.texts(nodes, DEFAULT, TIME)?),
            ("chats, key with limits", bench.texts(nodes, LIMITED, TIME)?),
            ("videos", bench.videos(nodes)?),
        ] {
            let Used { gateways, database, counters } = took.used;
            let [gateways, database, counters] =
                [gateways, database, counters].map(|time| took.each_ms(time));
            let (rate, stored) = (1e3 / took.each_ms(took.wall), took.stored_each());
            let count = took.count;
            eprintln!(
                "| {work} | {nodes}{when} | {count} | {rate:.1} | {gateways:.3} | {database:.3} | {counters:.3} | {stored:.1} |"
            );
        }
    }
    eprintln!("the counters: {}", world.scripts_run());
    world.stop()
}

struct Bench<'w> {
    world: &'w World,
    clients: Arc<Clients>,
    runtime: &'w Runtime,
}

impl Bench<'_> {
    /// The cost of work that does this many things. `nodes`: how many gateways do it.
    fn took(&self, nodes: usize, work: impl FnOnce() -> Result<usize>) -> Result<Took> {
        let (before, stored, started) = (self.used(nodes)?, self.world.bucket_answered(), Instant::now());
        let count = work()?;
        let wall = started.elapsed();
        // Pending data is written.
        std::thread::sleep(Duration::from_secs(1));
        let after = self.used(nodes)?;
        let used = Used {
            gateways: after.gateways.saturating_sub(before.gateways),
            database: after.database.saturating_sub(before.database),
            counters: after.counters.saturating_sub(before.counters),
        };
        Ok(Took { count, wall, stored: self.world.bucket_answered() - stored, used })
    }

    /// What the first gateways, this many, and the services they share have used.
    fn used(&self, nodes: usize) -> Result<Used> {
        let gateways = self.world.processor_time(nodes)?;
        Ok(Used { gateways, database: time_of(DATABASE)?, counters: time_of(COUNTERS)? })
    }

    /// Whole texts, requested by several clients at once.
    fn texts(&self, nodes: usize, key: &'static str, time: Duration) -> Result<Took> {
        self.took(nodes, || {
            let (answered, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
            let work = (0..nodes * CLIENTS).map(|client| {
                let (clients, answered, stop) =
                    (Arc::clone(&self.clients), Arc::clone(&answered), Arc::clone(&stop));
                async move {
                    while !stop.load(Ordering::Relaxed) {
                        if let Outcome::Text { .. } = clients.chat(client % nodes, key, false).await {
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
            let work: Vec<_> = work.map(|client| self.runtime.spawn(client)).collect();
            std::thread::sleep(time);
            stop.store(true, Ordering::Relaxed);
            self.runtime.block_on(join_all(work));
            Ok(answered.load(Ordering::Relaxed))
        })
    }

    /// Videos, from submission to end, with a notification for each.
    fn videos(&self, nodes: usize) -> Result<Took> {
        self.took(nodes, || self.runtime.block_on(self.make(nodes)))
    }

    async fn make(&self, nodes: usize) -> Result<usize> {
        let numbers: Vec<usize> = (0..VIDEOS * nodes).collect();
        let mut tasks = Vec::new();
        for some in numbers.chunks(AT_ONCE) {
            let submissions = some.iter().map(|number| {
                let intent = self.clients.intent();
                self.clients.submit(number % nodes, DEFAULT, intent, None, Some(&self.world.hook))
            });
            for outcome in join_all(submissions).await {
                match outcome {
                    Outcome::Task { task } => tasks.push(task["id"].as_str().unwrap_or_default().to_owned()),
                    other => bail!("a video is not accepted: {other:?}"),
                }
            }
        }
        let started = Instant::now();
        while !tasks.iter().all(|task| self.world.receiver.was_notified(task)) {
            if started.elapsed() > PATIENCE {
                bail!("not all videos end within {PATIENCE:?}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(tasks.len())
    }
}

/// The CPU time of a server that this process has started, by the names of its program: of all its processes, including those
/// that have ended.
fn time_of(programs: &[&str]) -> Result<Duration> {
    let mut processes = HashMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let place = entry?.path();
        // Others end while they are read.
        let Ok(stat) = std::fs::read_to_string(place.join("stat")) else { continue };
        let Some((head, fields)) = stat.rsplit_once(") ") else { continue };
        let (id, name) = head.split_once(" (").context("the state of a process")?;
        if !programs.contains(&name) {
            continue;
        }
        let fields: Vec<&str> = fields.split(' ').collect();
        let number =
            |place: usize| fields.get(place).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        // By proc(5): the parent, and the user and system time of its own and of children that have ended.
        processes.insert(id.parse::<u64>()?, (number(1), (11..15).map(number).sum::<u64>()));
    }
    let us = u64::from(std::process::id());
    let is_ours =
        |parent: u64| parent == us || processes.get(&parent).is_some_and(|(parent, _)| *parent == us);
    let ticks: u64 = processes.values().filter(|(parent, _)| is_ours(*parent)).map(|(_, ticks)| ticks).sum();
    Ok(Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second()))
}
