//! A gateway: the built program, in its own process, at an address that stays the same across restarts.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// How long it may take to start.
const STARTING: Duration = Duration::from_mins(1);
/// How long it may take to shut down.
const STOPPING: Duration = Duration::from_secs(20);

/// See the module.
pub(crate) struct Node {
    number: usize,
    program: PathBuf,
    folder: PathBuf,
    variables: Vec<(&'static str, String)>,
    /// The command in front of the program.
    before: Vec<String>,
    pub(crate) url: String,
    child: Option<Child>,
    /// The most memory that one of its processes had before it was killed or stopped, in KiB.
    pub(crate) peak_of_memory: u64,
}

impl Node {
    /// A node that is not started yet. `config`: builds its configuration from the address that it listens on.
    pub(crate) fn new(
        number: usize,
        program: &Path,
        folder: &Path,
        variables: Vec<(&'static str, String)>,
        before: Vec<String>,
        config: impl FnOnce(&str) -> String,
    ) -> Result<Self> {
        let folder = folder.join(format!("node-{number}"));
        std::fs::create_dir_all(&folder)?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        std::fs::write(folder.join("gatewright.toml"), config(&address))?;
        let url = format!("http://{address}");
        let (program, child, peak_of_memory) = (program.to_owned(), None, 0);
        let node = Self { number, program, folder, variables, before, url, child, peak_of_memory };
        node.set_clock(0)?;
        Ok(node)
    }

    /// Starts it, and waits until it listens.
    pub(crate) fn start(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(self.folder.join("log"))?;
        let mut command = self.command()?;
        command.args(["serve", "--json", "--config"]).arg(self.folder.join("gatewright.toml"));
        command.env("GATEWRIGHT_CLOCK_FROM", self.clock()).envs(self.variables.iter().cloned());
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("setpriv of util-linux")?;
        let out = child.stdout.take().context("a pipe")?;
        self.child = Some(child);
        let (sender, ready) = channel();
        spawn(move || {
            let mut line = String::new();
            let is_ready = BufReader::new(out).read_line(&mut line).is_ok_and(|size| size > 0);
            _ = sender.send(is_ready);
        });
        if ready.recv_timeout(STARTING) != Ok(true) {
            bail!("node {} does not start: see {}", self.number, self.folder.join("log").display());
        }
        Ok(())
    }

    /// The program in its environment. It ends when the thread that starts it does, also when that is killed.
    fn command(&self) -> Result<Command> {
        let mut words =
            self.before.iter().map(String::as_str).chain(["setpriv", "--pdeathsig", "KILL", "--"]);
        let mut command = Command::new(words.next().context("a command")?);
        command.args(words).arg(&self.program).current_dir(&self.folder);
        Ok(command)
    }

    /// Checks a store for damage from the node's environment, as an operator would. Errors: there is some.
    pub(crate) fn check_store(&self, place: &[&str], variables: &[(&str, &str)]) -> Result<()> {
        let mut command = self.command()?;
        let out = command.args(["store", "check"]).args(place).envs(variables.iter().copied()).output()?;
        if !out.status.success() {
            let (found, errors) =
                (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
            bail!("the store of node {} is damaged: {found}{errors}", self.number);
        }
        Ok(())
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.note_memory();
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Asks it to shut down, and waits. Errors: it doesn't, or it failed.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.note_memory();
        self.signal(Signal::TERM)?;
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let started = Instant::now();
        loop {
            match child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("node {} was stopped, and ended with {status}", self.number),
                None if started.elapsed() > STOPPING => {
                    child.kill()?;
                    child.wait()?;
                    bail!("node {} does not stop within {STOPPING:?}", self.number);
                }
                None => sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Makes it hang.
    pub(crate) fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Resumes it.
    pub(crate) fn go_on(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Sets its clock this many milliseconds ahead of the machine's.
    pub(crate) fn set_clock(&self, by_ms: i64) -> Result<()> {
        // Renamed: a reader sees one or the other.
        let beside = self.clock().with_extension("new");
        std::fs::write(&beside, by_ms.to_string())?;
        Ok(std::fs::rename(beside, self.clock())?)
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> Result<bool> {
        Ok(match &mut self.child {
            Some(child) => child.try_wait()?.is_some(),
            None => false,
        })
    }

    /// The CPU time that it has used.
    pub(crate) fn processor_time(&self) -> Result<Duration> {
        let id = self.child.as_ref().context("a process")?.id();
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        // After the name, which is in parentheses; the fields are those of proc(5).
        let (_, fields) = stat.rsplit_once(") ").context("the state of a process")?;
        let ticks: Vec<u64> = fields.split(' ').skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
        let per_second = rustix::param::clock_ticks_per_second();
        Ok(Duration::from_millis(ticks.iter().sum::<u64>() * 1000 / per_second))
    }

    /// Notes how much memory its process has had at most.
    fn note_memory(&mut self) {
        let Some(id) = self.child.as_ref().map(Child::id) else { return };
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.split_whitespace().next()?.parse().ok());
        self.peak_of_memory = self.peak_of_memory.max(peak.unwrap_or_default());
    }

    fn clock(&self) -> PathBuf {
        self.folder.join("clock")
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let Some(child) = &self.child else { return Ok(()) };
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("the id of a process")?;
        Ok(kill_process(id, signal)?)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        _ = self.kill();
    }
}
