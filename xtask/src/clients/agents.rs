//! Coding agents, each using another protocol: the scenarios of `tests/clients`, through the gateway.

mod programs;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use self::programs::{AGENTS, Agent, AgentCall, AgentOutput};
use super::outcomes::{OutcomeRow, Outcomes};
use super::upstreams::{BROKEN, HICCUP, TestedUpstream, Upstreams};
use crate::artefacts::target;
use crate::process::missing;

/// How long an agent may take, even on a busy machine.
const LIMIT: Duration = Duration::from_mins(4);
/// Number of agents that run concurrently: they mostly wait.
const AT_ONCE: usize = 3;
/// Variables that an agent inherits, besides its own.
const INHERITED: [&str; 2] = ["PATH", "LANG"];
/// A text found only in the file that an agent must read.
const NOTES: &str = "the heron stands in the reeds";
/// What it must write into `copy.txt`.
const WRITTEN: &str = "written by the agent";
/// The story of the third-party server.
const STORY: &str =
    "Rivers begin small, gather what the hills give them, and end in a sea that keeps none of their names.";
/// The last sentence of each story of the simulator contains this.
const CLOSING: &str = "simulated";
const WRONG_KEY: &str = "a-wrong-key-of-nobody";

/// The task for an agent; the names are those of the players.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scenario {
    Chat,
    /// It shows the answer incrementally.
    Stream,
    /// It reads a file and writes one, with its own tools.
    Tools,
    /// The answer is a document that matches a schema.
    Structured,
    Image,
    UnknownModel,
    WrongKey,
    /// The first request is answered with 429; it retries by itself, or reports it.
    RateLimit,
    /// A partial answer is not passed off as complete.
    BrokenStream,
}

const SCENARIOS: [Scenario; 9] = [
    Scenario::Chat,
    Scenario::Stream,
    Scenario::Tools,
    Scenario::Structured,
    Scenario::Image,
    Scenario::UnknownModel,
    Scenario::WrongKey,
    Scenario::RateLimit,
    Scenario::BrokenStream,
];

impl Scenario {
    fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Stream => "stream",
            Self::Tools => "tools",
            Self::Structured => "structured",
            Self::Image => "image",
            Self::UnknownModel => "unknown_model",
            Self::WrongKey => "wrong_key",
            Self::RateLimit => "rate_limit",
            Self::BrokenStream => "broken_stream",
        }
    }
}

/// The metrics of each gateway, by address, before and after the agents run.
struct GatewayMetrics {
    before: BTreeMap<String, String>,
    after: BTreeMap<String, String>,
}

impl GatewayMetrics {
    /// The increase of a counter. name: with its labels.
    fn grew(&self, place: &TestedUpstream<'_>, name: &str) -> Result<u64> {
        let counted = |metrics: &BTreeMap<String, String>| {
            let mut lines = metrics[place.gateway.address()].lines();
            let count = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            // A counter appears when it is first incremented.
            count.map_or(Ok(0), str::parse::<u64>)
        };
        Ok(counted(&self.after)?.saturating_sub(counted(&self.before)?))
    }
}

/// A scenario of an agent at a place.
struct Job<'a> {
    agent: &'static Agent,
    place: &'a TestedUpstream<'a>,
    scenario: Scenario,
}

/// Runs each agent at each upstream: each scenario at one upstream out of `share`.
pub(super) fn work(upstreams: &Upstreams, share: usize, outcomes: &mut Outcomes) -> Result<()> {
    let homes = target().join("clients/agents");
    if homes.exists() {
        fs::remove_dir_all(&homes)?;
    }
    let places = upstreams.places();
    // The slowest first.
    let mut jobs = Vec::new();
    for (number, agent) in AGENTS.iter().enumerate().rev() {
        for (index, place) in places.iter().enumerate() {
            for (of_scenario, scenario) in SCENARIOS.into_iter().enumerate() {
                let job = Job { agent, place, scenario };
                if (number + index + of_scenario).is_multiple_of(share) || job.lacking().is_some() {
                    jobs.push(job);
                } else {
                    outcomes.add(job.omitted());
                }
            }
        }
    }
    let before = metrics(&places)?;
    let next = Mutex::new(jobs.iter().enumerate());
    let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
    let rows = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((number, job)) = take() {
                    let row = job.row(&homes.join(number.to_string()));
                    rows.lock().unwrap_or_else(PoisonError::into_inner).push((number, row));
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|(number, _)| *number);
    let metrics_diff = GatewayMetrics { before, after: metrics(&places)? };
    for (number, mut row) in rows {
        let job = &jobs[number];
        if row.failed.is_none() && job.is_limited() && metrics_diff.grew(job.place, &job.limits())? == 0 {
            row.failed = Some(format!("it met no 429: {} did not grow", job.limits()));
        }
        outcomes.add(row);
    }
    for miscount in miscounts(&jobs, &metrics_diff)? {
        outcomes.complain(miscount);
    }
    Ok(())
}

/// Checks that whatever an agent printed came from the gateway, over its own protocol, and that it retried only when asked
/// to.
fn miscounts(jobs: &[Job<'_>], metrics_diff: &GatewayMetrics) -> Result<BTreeSet<String>> {
    let mut miscounts = BTreeSet::new();
    for job in jobs {
        let here = |other: &&Job<'_>| {
            other.place.gateway.address() == job.place.gateway.address()
                && other.agent.package == job.agent.package
        };
        for status in [200, 429] {
            let has_status =
                |other: &&Job<'_>| if status == 200 { other.is_answered() } else { other.is_limited() };
            let expected = jobs.iter().filter(here).filter(has_status).count() as u64;
            let counted = metrics_diff.grew(job.place, &job.answers(status))?;
            if counted < expected {
                let here = job.place.gateway.address();
                let what = job.answers(status);
                miscounts.insert(format!("{expected} scenarios had only {counted} answers {what} of {here}"));
            }
        }
    }
    Ok(miscounts)
}

impl Job<'_> {
    /// Whether the gateway also answers with success.
    fn is_answered(&self) -> bool {
        let refused =
            matches!(self.scenario, Scenario::UnknownModel | Scenario::WrongKey | Scenario::BrokenStream)
                || self.gives_up();
        !refused && self.lacking().is_none()
    }

    /// Whether the gateway first answers with 429.
    fn is_limited(&self) -> bool {
        self.scenario == Scenario::RateLimit && self.lacking().is_none()
    }

    /// Whether the agent treats a 429 as final: behind the proxy, nothing tells how long to wait.
    fn gives_up(&self) -> bool {
        self.is_limited() && self.agent.needs_wait && self.place.hides_wait()
    }

    /// The counter of the gateway's responses to the agent.
    fn answers(&self, status: u16) -> String {
        let operation = self.agent.operation;
        format!("gatewright_requests_total{{operation=\"{operation}\",status=\"{status}\"}}")
    }

    /// The counter of 429 responses that only this agent can have received at this place.
    fn limits(&self) -> String {
        let model = self.place.failing(HICCUP, self.agent.protocol);
        self.place.upstream().map_or_else(
            || self.answers(429),
            |upstream| {
                let labels = format!("upstream=\"{upstream}\",model=\"{model}\",outcome=\"rate_limited\"");
                format!("gatewright_upstream_attempts_total{{{labels}}}")
            },
        )
    }

    /// Why the scenario can't be run.
    fn lacking(&self) -> Option<&'static str> {
        let lacks =
            |(scenario, reason): &(Scenario, &'static str)| (*scenario == self.scenario).then_some(*reason);
        let blind = self.scenario == Scenario::Image && self.place.name == "litellm-native";
        let of_place = blind.then_some("the proxy drops pictures of native requests");
        self.agent.lacks.iter().find_map(lacks).or(of_place)
    }

    fn row(&self, home: &Path) -> OutcomeRow {
        let skipped = self.lacking().map(str::to_owned);
        let failed = match skipped {
            Some(_) => None,
            None => self.play(home).err().map(|error| format!("{error:#}")),
        };
        OutcomeRow { skipped, failed, omitted: false, ..self.omitted() }
    }

    /// The row of a scenario that is not run.
    fn omitted(&self) -> OutcomeRow {
        OutcomeRow {
            upstream: self.place.name.clone(),
            client: format!("agent: {}", self.agent.package),
            scenario: self.scenario.name().to_owned(),
            omitted: true,
            skipped: None,
            failed: None,
        }
    }

    /// Errors: it did not do its task.
    fn play(&self, home: &Path) -> Result<()> {
        let work = home.join("work");
        fs::create_dir_all(&work)?;
        fs::create_dir(home.join("tmp"))?;
        fs::write(work.join("notes.txt"), NOTES)?;
        fs::copy(crate::process::root().join("tests/clients/picture.png"), work.join("picture.png"))?;
        let turn = self.turn(home);
        let mut command = (self.agent.command)(&turn)?;
        let inherited = INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.envs(inherited).env("HOME", home).env("TMPDIR", home.join("tmp")).current_dir(&work);
        let ended = bounded(&mut command, home)?;
        let parsed = AgentOutput::read(&ended.printed, self.agent.parse_line);
        self.judge(&ended, &parsed, &work).with_context(|| format!("it printed:\n{}", ended.printed))
    }

    fn turn<'h>(&self, home: &'h Path) -> AgentCall<'h> {
        let Self { agent, place, scenario } = self;
        let model = match scenario {
            Scenario::UnknownModel => "no-such-model".to_owned(),
            Scenario::RateLimit => place.failing(HICCUP, agent.protocol),
            Scenario::BrokenStream => place.failing(BROKEN, agent.protocol),
            _ => place.model(agent.protocol),
        };
        let key = if *scenario == Scenario::WrongKey { WRONG_KEY } else { place.gateway.key() };
        let prompt = match scenario {
            Scenario::Chat | Scenario::RateLimit => "Reply with exactly: the agent works".to_owned(),
            Scenario::Stream | Scenario::BrokenStream => "Tell me about rivers".to_owned(),
            Scenario::Tools => (agent.calls)(&home.join("work")),
            Scenario::Structured => "Plan a trip to Paris".to_owned(),
            Scenario::Image => "How many pictures do you see?".to_owned(),
            Scenario::UnknownModel | Scenario::WrongKey => "Say hello".to_owned(),
        };
        AgentCall {
            scenario: *scenario,
            url: place.gateway.address().to_owned(),
            key: key.to_owned(),
            model,
            prompt,
            home,
        }
    }

    /// Whether a story is complete, in that provider's version.
    fn is_whole(&self, story: &str) -> bool {
        if self.place.is_other_makers() {
            return story == STORY;
        }
        let last = story.rsplit(". ").next().unwrap_or_default();
        last.contains(CLOSING) && last.ends_with('.')
    }

    /// Errors: its output or its files don't match the scenario.
    fn judge(&self, ended: &ProcessResult, parsed: &AgentOutput, work: &Path) -> Result<()> {
        let failing = match self.scenario {
            Scenario::UnknownModel => Some("no-such-model"),
            Scenario::WrongKey => Some("Incorrect API key"),
            Scenario::RateLimit if self.gives_up() => Some("429 Too Many Requests"),
            Scenario::BrokenStream if !self.is_whole(&parsed.answer) => Some(""),
            _ => None,
        };
        if let Some(reason) = failing {
            let is_reported = ended.printed.contains(reason) && !ended.printed.contains(WRONG_KEY);
            let failed = ended.success == Some(false) || ended.success == Some(true) && parsed.failed;
            if !failed || !is_reported {
                bail!("it did not fail as it should ({:?})", ended.success);
            }
            return Ok(());
        }
        if ended.success != Some(true) {
            bail!("it failed, or did not end ({:?})", ended.success);
        }
        let answered = match self.scenario {
            Scenario::Chat | Scenario::RateLimit => parsed.answer == "the agent works",
            Scenario::Stream => self.is_whole(&parsed.answer) && parsed.pieces > 4,
            Scenario::Tools => {
                let copy = fs::read_to_string(work.join("copy.txt")).context("it wrote no copy.txt")?;
                parsed.answer.contains(NOTES) && copy == WRITTEN
            }
            Scenario::Structured => {
                let document = parsed.document.as_ref().context("it gave no document")?;
                document["the_city"].is_string() && document["days"].is_array()
            }
            Scenario::Image => matches!(&*parsed.answer, "1 picture" | "1 pictures"),
            Scenario::UnknownModel | Scenario::WrongKey | Scenario::BrokenStream => true,
        };
        if !answered {
            bail!("it answered {:?} in {} pieces", parsed.answer, parsed.pieces);
        }
        Ok(())
    }
}

/// How a program ended.
struct ProcessResult {
    /// None if it had to be killed.
    success: Option<bool>,
    printed: String,
}

/// Runs a command in its own process group, which is killed at the time limit and at the end.
fn bounded(command: &mut Command, folder: &Path) -> Result<ProcessResult> {
    let path = folder.join("printed");
    let printed = File::create(&path)?;
    command.stdin(Stdio::null()).stdout(printed.try_clone()?).stderr(printed).process_group(0);
    let mut child = command.spawn().with_context(|| missing(command))?;
    let started = Instant::now();
    let mut status = None;
    while status.is_none() && started.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(50));
        status = child.try_wait()?;
    }
    // Fails if nothing is left of the group.
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
    child.wait()?;
    let printed = String::from_utf8_lossy(&fs::read(path)?).into_owned();
    Ok(ProcessResult { success: status.map(|status| status.success()), printed })
}

/// The metrics of each gateway, by address.
fn metrics(places: &[TestedUpstream<'_>]) -> Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    for address in places.iter().map(|place| place.gateway.address()) {
        if texts.contains_key(address) {
            continue;
        }
        let host = address.strip_prefix("http://").context("the gateway speaks plain HTTP")?;
        let mut socket = TcpStream::connect(host)?;
        write!(socket, "GET /metrics HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")?;
        let mut text = String::new();
        socket.read_to_string(&mut text)?;
        texts.insert(address.to_owned(), text);
    }
    Ok(texts)
}
