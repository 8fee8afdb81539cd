//! What the clients do: all at once, over all nodes, until they are stopped; and what they request at the end.

mod keys;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::clients::{Clients, DEFAULT, DEFAULT_ALONE};
use crate::history::{ALONE, Event, Outcome};
use crate::receiver::Receiver;

/// How many clients do a bit of everything over the nodes that share a store.
const WORKERS: u64 = 6;
/// A client's pause between two calls, in milliseconds.
const PAUSE_MS: Range<u64> = 20..160;
/// How often a request with an idempotency key is repeated immediately if its response was lost.
const REPEATS: u32 = 3;
/// How long everything may take to complete once all faults are over.
const SETTLING: Duration = Duration::from_mins(2);
/// The same for each task, if that is longer: after an hour, thousands of files are still to be read.
const SETTLING_OF_TASK: Duration = Duration::from_millis(20);
/// After the last fault, faults are still an excuse for this long: gateways may need six seconds to use their shared services
/// again, and earlier work is waiting.
pub(crate) const BACK: Duration = Duration::from_secs(8);
/// The minimum time that files exist, from the response to the submission: an hour after their video ended. A minute less,
/// because an earlier response to it may have been lost.
pub(crate) const FILES_LAST: Duration = Duration::from_mins(59);
/// The minimum time that the response to an idempotency key is returned again, from its first request: an hour after it was stored.
const ANSWERS_LAST: Duration = FILES_LAST;
/// How often everything is then requested from each node.
const ROUNDS: u64 = 3;
/// How long the store must report the same counts until they are final.
const STEADY: Duration = Duration::from_secs(3);
/// How many calls are made at once at the end.
const AT_ONCE: usize = 8;

/// A task that was accepted.
#[derive(Debug, Clone)]
struct Accepted {
    id: String,
    is_alone: bool,
    since: Instant,
    /// Whether it names a receiver of notifications.
    notifies: bool,
    /// Its last observed state.
    task: Value,
    fetched: bool,
}

impl Accepted {
    fn key(&self) -> &'static str {
        key_of(self.is_alone)
    }

    fn node(&self, random: &mut StdRng) -> usize {
        node_of(self.is_alone, random)
    }

    fn is_over(&self) -> bool {
        self.is_completed() || self.task["status"] == "failed"
    }

    fn is_completed(&self) -> bool {
        self.task["status"] == "completed"
    }

    /// Whether its file must still be served.
    fn has_its_file(&self) -> bool {
        self.since.elapsed() < FILES_LAST
    }
}

/// A text that is requested with an idempotency key.
#[derive(Debug, Clone, Copy)]
struct Keyed {
    intent: u64,
    is_alone: bool,
    /// Whether it is a response, which is stored.
    is_stored: bool,
    /// When it was requested first.
    since: Instant,
}

impl Keyed {
    /// Whether its response must still be returned again.
    fn lasts(&self) -> bool {
        self.since.elapsed() < ANSWERS_LAST
    }
}

/// A response that was reported, and is stored.
#[derive(Debug, Clone)]
struct Stored {
    intent: u64,
    id: String,
    is_alone: bool,
}

/// See the module.
pub(crate) struct Load {
    clients: Clients,
    receiver: Arc<Receiver>,
    hook: String,
    seed: u64,
    /// The clients stop.
    stop: AtomicBool,
    /// Those with limits stop, too.
    end: AtomicBool,
    tasks: Mutex<Vec<Accepted>>,
    responses: Mutex<Vec<Stored>>,
    keyed: Mutex<Vec<Keyed>>,
}

/// The clients at work.
pub(crate) struct Working {
    most: Vec<JoinHandle<()>>,
    limited: JoinHandle<()>,
}

impl Load {
    pub(crate) fn new(clients: Clients, receiver: Arc<Receiver>, hook: String, seed: u64) -> Arc<Self> {
        let (stop, end, tasks, responses, keyed) = Default::default();
        Arc::new(Self { clients, receiver, hook, seed, stop, end, tasks, responses, keyed })
    }

    /// Starts the clients.
    pub(crate) fn start(self: &Arc<Self>) -> Working {
        let random = |number: u64| StdRng::seed_from_u64(self.seed.wrapping_mul(1_000).wrapping_add(number));
        let mut most = Vec::new();
        for number in 0..WORKERS {
            most.push(tokio::spawn(Arc::clone(self).work(random(number), false)));
        }
        most.push(tokio::spawn(Arc::clone(self).work(random(100), true)));
        most.push(tokio::spawn(Arc::clone(self).change_keys(random(101), false)));
        most.push(tokio::spawn(Arc::clone(self).change_keys(random(103), true)));
        Working { most, limited: tokio::spawn(Arc::clone(self).use_up(random(102))) }
    }

    /// Stops the clients, and waits until everything is complete: the tasks have ended and are reported, the files were read, and
    /// the usage is counted. Errors: that takes too long; what is missing is in the history.
    pub(crate) async fn settle(self: &Arc<Self>, working: Working) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for client in working.most {
            client.await?;
        }
        let mut random = StdRng::seed_from_u64(self.seed);
        let started = Instant::now();
        self.finish_all(started, &mut random).await;
        // The clients stopped after the last fault.
        tokio::time::sleep(BACK.saturating_sub(started.elapsed())).await;
        join_all((0..=ALONE).map(|node| self.ask_all(node, random.random()))).await;
        self.repeat_all(&mut random).await;
        // An hour has tens of thousands of keys: to repeat them all takes longer than everything may.
        let late = self.finish_all(Instant::now(), &mut random).await;
        // Every node reports the same.
        let tasks = self.tasks().clone();
        for some in tasks.chunks(AT_ONCE) {
            let look_ups = some.iter().flat_map(|task| {
                nodes_of(task.is_alone).map(|node| self.clients.look_up(node, task.key(), &task.id))
            });
            join_all(look_ups).await;
        }
        // And serves the same.
        let tasks = self.tasks().clone();
        let lasting = tasks.iter().filter(|task| task.is_completed() && task.has_its_file());
        for some in lasting.collect::<Vec<_>>().chunks(AT_ONCE) {
            let fetches =
                some.iter().flat_map(|task| nodes_of(task.is_alone).map(|node| self.fetch(node, task)));
            join_all(fetches).await;
        }
        // What was spent has to count meanwhile.
        tokio::time::sleep(Duration::from_secs(12).saturating_sub(started.elapsed())).await;
        self.end.store(true, Ordering::Relaxed);
        working.limited.await?;
        self.count().await?;
        if late > 0 {
            bail!(
                "{late} tasks are not over, not notified or without their files after the time that they have"
            );
        }
        Ok(())
    }

    /// Waits until nothing is pending for any task. Returns the number of tasks that take too long, since `started`.
    async fn finish_all(&self, started: Instant, random: &mut StdRng) -> usize {
        let tasks = u32::try_from(self.tasks().len()).unwrap_or(u32::MAX);
        let patience = SETTLING.max(SETTLING_OF_TASK.saturating_mul(tasks));
        loop {
            let waiting = self.waiting();
            if waiting.is_empty() || started.elapsed() > patience {
                return waiting.len();
            }
            for some in waiting.chunks(AT_ONCE) {
                let nodes: Vec<usize> = some.iter().map(|task| task.node(random)).collect();
                join_all(some.iter().zip(nodes).map(|(task, node)| self.finish(node, task))).await;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Asks a node for everything, a few times.
    async fn ask_all(&self, node: usize, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        let is_alone = node == ALONE;
        let key = key_of(is_alone);
        for _ in 0..ROUNDS {
            self.clients.chat(node, key, false).await;
            self.clients.chat(node, key, true).await;
            let intent = self.clients.intent();
            if let Outcome::Text { id, .. } = self.clients.respond(node, key, intent, None).await {
                let other = if is_alone { ALONE } else { (node + 1) % ALONE };
                self.clients.retrieve(other, key, intent, &id).await;
            }
            self.submit(&mut random, node, is_alone).await;
        }
    }

    /// The tasks for which something is pending.
    fn waiting(&self) -> Vec<Accepted> {
        let tasks = self.tasks();
        let waiting = tasks.iter().filter(|task| {
            let is_read = task.fetched || !task.is_completed() || !task.has_its_file();
            !task.is_over() || !is_read || (task.notifies && !self.receiver.was_notified(&task.id))
        });
        waiting.cloned().collect()
    }

    async fn finish(&self, node: usize, task: &Accepted) {
        if !task.is_over() {
            self.look_up(node, task).await;
        } else if !task.fetched && task.is_completed() && task.has_its_file() {
            self.fetch(node, task).await;
        }
    }

    /// A bit of everything. `is_alone`: at the node that shares nothing.
    async fn work(self: Arc<Self>, mut random: StdRng, is_alone: bool) {
        let key = key_of(is_alone);
        while !self.stop.load(Ordering::Relaxed) {
            let node = node_of(is_alone, &mut random);
            match random.random_range(0..100) {
                0..15 => _ = self.clients.chat(node, key, false).await,
                15..32 => _ = self.clients.chat(node, key, true).await,
                32..37 => _ = self.respond(node, self.clients.intent(), is_alone, None).await,
                37..49 => self.ask_once(&mut random, node, is_alone).await,
                49..53 => {
                    let keyed =
                        any(&self.keyed(), &mut random, |keyed| keyed.is_alone == is_alone && keyed.lasts());
                    if let Some(keyed) = keyed {
                        self.repeat(node, keyed).await;
                    }
                }
                53..60 => {
                    let stored = any(&self.responses(), &mut random, |stored| stored.is_alone == is_alone);
                    if let Some(Stored { intent, id, .. }) = stored {
                        self.clients.retrieve(node, key, intent, &id).await;
                    }
                }
                60..75 => self.submit(&mut random, node, is_alone).await,
                choice => {
                    let task = any(&self.tasks(), &mut random, |task| task.is_alone == is_alone);
                    match task {
                        Some(task) if choice >= 92 && task.is_completed() => self.fetch(node, &task).await,
                        Some(task) => self.look_up(node, &task).await,
                        None => {}
                    }
                }
            }
            rest(&mut random).await;
        }
    }

    /// Requests a response, which is stored.
    async fn respond(&self, node: usize, intent: u64, is_alone: bool, once: Option<&str>) -> Outcome {
        let outcome = self.clients.respond(node, key_of(is_alone), intent, once).await;
        if let Outcome::Text { id, .. } = &outcome {
            let mut responses = self.responses();
            if responses.iter().all(|known| known.id != *id) {
                responses.push(Stored { intent, id: id.clone(), is_alone });
            }
        }
        outcome
    }

    /// Requests a text with an idempotency key, and again if the outcome is unknown. Others repeat it later.
    async fn ask_once(&self, random: &mut StdRng, mut node: usize, is_alone: bool) {
        let (intent, is_stored) = (self.clients.intent(), random.random_bool(0.3));
        let keyed = Keyed { intent, is_alone, is_stored, since: Instant::now() };
        self.keyed().push(keyed);
        for _ in 0..=REPEATS {
            match self.repeat(node, keyed).await {
                // Sometimes a response that arrived is requested again.
                Outcome::Text { .. } if random.random_bool(0.7) => return,
                Outcome::Refused { status, .. } if status < 500 && status != 409 => return,
                _ => {}
            }
            rest(random).await;
            node = node_of(is_alone, random);
        }
    }

    async fn repeat(&self, node: usize, keyed: Keyed) -> Outcome {
        let Keyed { intent, is_alone, is_stored, .. } = keyed;
        let once = once(intent);
        if is_stored {
            return self.respond(node, intent, is_alone, Some(&once)).await;
        }
        self.clients.chat_about(node, key_of(is_alone), intent, false, Some(&once)).await
    }

    /// Requests each text that has an idempotency key again, at any node.
    async fn repeat_all(&self, random: &mut StdRng) {
        let keyed = self.keyed().clone();
        for some in keyed.chunks(AT_ONCE) {
            let lasting: Vec<&Keyed> = some.iter().filter(|one| one.lasts()).collect();
            let nodes: Vec<usize> = lasting.iter().map(|one| node_of(one.is_alone, random)).collect();
            join_all(lasting.iter().zip(nodes).map(|(one, node)| self.repeat(node, **one))).await;
        }
    }

    /// Submits a video, and again if it's unknown whether it was accepted.
    async fn submit(&self, random: &mut StdRng, node: usize, is_alone: bool) {
        let intent = self.clients.intent();
        let once = random.random_bool(0.5).then(|| once(intent));
        let hook = random.random_bool(0.6).then_some(self.hook.as_str());
        let key = key_of(is_alone);
        let mut node = node;
        for _ in 0..=REPEATS {
            match self.clients.submit(node, key, intent, once.as_deref(), hook).await {
                Outcome::Task { task } => {
                    let id = task["id"].as_str().unwrap_or_default().to_owned();
                    let (since, notifies) = (Instant::now(), hook.is_some());
                    self.accept(Accepted { id, is_alone, since, notifies, task, fetched: false });
                    // Sometimes a response that arrived is requested again.
                    if once.is_none() || random.random_bool(0.7) {
                        return;
                    }
                }
                Outcome::Refused { status, .. } if status < 500 && status != 409 => return,
                _ if once.is_none() => return,
                _ => {}
            }
            rest(random).await;
            node = node_of(is_alone, random);
        }
    }

    async fn look_up(&self, node: usize, task: &Accepted) {
        if let Outcome::Task { task: seen } = self.clients.look_up(node, task.key(), &task.id).await {
            self.update(&task.id, |known| {
                if !known.is_over() {
                    known.task = seen;
                }
            });
        }
    }

    async fn fetch(&self, node: usize, task: &Accepted) {
        let url = task.task["output"]["url"].as_str().unwrap_or_default();
        if let Outcome::File { .. } = self.clients.fetch(node, task.key(), &task.id, url).await {
            self.update(&task.id, |known| known.fetched = true);
        }
    }

    /// Records the stores' counts, once they no longer change.
    async fn count(&self) -> Result<()> {
        for node in [0, ALONE] {
            let (started, mut steady) = (Instant::now(), Instant::now());
            let mut counted = None;
            while steady.elapsed() < STEADY {
                if started.elapsed() > SETTLING {
                    bail!("the usage at node {node} does not come to an end");
                }
                let now = self.clients.usage(node).await;
                if now.is_none() || now != counted {
                    (counted, steady) = (now, Instant::now());
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            // Rows without requests count failed ones.
            for row in counted.unwrap_or_default().iter().filter(|row| row["requests"] != 0) {
                let of_configuration = if node == ALONE { DEFAULT_ALONE } else { DEFAULT };
                let key = row["name"].as_str().unwrap_or(of_configuration).to_owned();
                let number = |member: &str| row[member].as_u64().unwrap_or_default();
                self.clients.history.add(Event::Counted {
                    key,
                    model: row["model"].as_str().unwrap_or_default().to_owned(),
                    requests: number("requests"),
                    complete: number("complete"),
                    input: number("input_tokens"),
                    output: number("output_tokens"),
                    estimated: number("estimated"),
                    cost: billionths(&row["cost"]),
                });
            }
        }
        Ok(())
    }

    /// How many tasks were accepted, by how they ended.
    pub(crate) fn ends(&self) -> BTreeMap<String, usize> {
        let mut ends = BTreeMap::new();
        for task in &*self.tasks() {
            *ends.entry(task.task["status"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
        ends
    }

    /// Records a task, unless it is known: a repeated submission gets the original response.
    fn accept(&self, task: Accepted) {
        let mut tasks = self.tasks();
        if tasks.iter().all(|known| known.id != task.id) {
            tasks.push(task);
        }
    }

    fn update(&self, id: &str, change: impl FnOnce(&mut Accepted)) {
        if let Some(task) = self.tasks().iter_mut().find(|task| task.id == id) {
            change(task);
        }
    }

    fn tasks(&self) -> MutexGuard<'_, Vec<Accepted>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn responses(&self) -> MutexGuard<'_, Vec<Stored>> {
        self.responses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keyed(&self) -> MutexGuard<'_, Vec<Keyed>> {
        self.keyed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An amount of the currency, exact to the billionth.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
fn billionths(amount: &Value) -> u64 {
    (amount.as_f64().unwrap_or_default() * 1e9).round() as u64
}

/// Any one of these.
fn any<T: Clone>(all: &[T], random: &mut StdRng, is_selected: impl Fn(&T) -> bool) -> Option<T> {
    let selected: Vec<&T> = all.iter().filter(|one| is_selected(one)).collect();
    (!selected.is_empty()).then(|| selected[random.random_range(0..selected.len())].clone())
}

/// The idempotency key of an intent.
fn once(intent: u64) -> String {
    format!("once-{intent}")
}

/// The nodes that share a store.
fn nodes_of(is_alone: bool) -> Range<usize> {
    if is_alone { ALONE..ALONE + 1 } else { 0..ALONE }
}

/// One of them.
fn node_of(is_alone: bool, random: &mut StdRng) -> usize {
    random.random_range(nodes_of(is_alone))
}

/// The names under which the configuration's key is counted at the standalone node, and at the others.
fn key_of(is_alone: bool) -> &'static str {
    if is_alone { DEFAULT_ALONE } else { DEFAULT }
}

async fn rest(random: &mut StdRng) {
    tokio::time::sleep(Duration::from_millis(random.random_range(PAUSE_MS))).await;
}
