//! A program kept within bounds: its own process group, no input, bounded output, a hard time limit, and nothing of it
//! left when it has ended.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use uuid::Uuid;

/// Between the request to end and the end that nobody can refuse.
const GRACE: Duration = Duration::from_secs(2);
/// How long output is waited for after everything that could write it was ended.
const DRAIN: Duration = Duration::from_secs(2);
/// Most bytes that are kept of each output; the rest is read and dropped.
const MAX_OUTPUT_BYTES: usize = 4 << 20;
/// Marks a run's processes, so that those which left the group are found, too.
const MARKER_VARIABLE: &str = "GATEWRIGHT_CHECK_RUN";

/// A program and all it is given.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) folder: PathBuf,
    pub(super) environment: Vec<(String, OsString)>,
}

/// Why a program did not start.
#[derive(Debug)]
pub(crate) enum NotStarted {
    Missing,
    Other(String),
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// None where a signal or the time limit ended it.
    pub(crate) exit_code: Option<i32>,
    /// Name of the signal that ended it.
    pub(crate) signal: Option<String>,
    pub(crate) timed_out: bool,
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
}

/// One output.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    pub(crate) text: String,
    /// There was more than is kept.
    pub(crate) cut: bool,
}

/// Runs a program to its end or to its time limit. Dropping the future ends all of it at once.
pub(super) async fn run(call: &Call, limit: Duration) -> Result<Ended, NotStarted> {
    let marker = Uuid::new_v4().simple().to_string();
    let mut command = Command::new(&call.program);
    command
        .args(&call.arguments)
        .env_clear()
        .envs(call.environment.iter().map(|(name, value)| (name, value)))
        .env(MARKER_VARIABLE, &marker)
        .current_dir(&call.folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => NotStarted::Missing,
        _ => NotStarted::Other(error.to_string()),
    })?;
    let mut group = Group::new(&child, marker);
    let (stdout, stderr) = (Capture::begin(child.stdout.take()), Capture::begin(child.stderr.take()));
    let (status, last_signal) = wait(&mut child, &group, limit).await;
    // What the program left behind must neither go on nor hold its outputs open.
    group.kill();
    let (stdout, stderr) = tokio::join!(stdout.finish(), stderr.finish());
    let timed_out = last_signal.is_some();
    let signal = status
        .as_ref()
        .ok()
        .and_then(|status| signal_name(*status))
        .or_else(|| last_signal.map(str::to_owned));
    let exit_code = status.ok().and_then(|status| status.code()).filter(|_| !timed_out);
    Ok(Ended { exit_code, signal, timed_out, stdout, stderr })
}

/// Waits for the end, and brings it about at the time limit: then with the last signal that was sent.
async fn wait(
    child: &mut Child,
    group: &Group,
    limit: Duration,
) -> (io::Result<ExitStatus>, Option<&'static str>) {
    if let Ok(status) = timeout(limit, child.wait()).await {
        return (status, None);
    }
    group.ask_to_end();
    if let Ok(status) = timeout(GRACE, child.wait()).await {
        return (status, Some("SIGTERM"));
    }
    // The rest of the group follows as soon as the program itself has ended. An error means that it has.
    let _ = child.start_kill();
    (child.wait().await, Some("SIGKILL"))
}

/// Reads an output while the program runs.
struct Capture {
    task: JoinHandle<()>,
    kept: Arc<Mutex<(Vec<u8>, bool)>>,
}

impl Capture {
    fn begin(output: Option<impl AsyncRead + Send + Unpin + 'static>) -> Self {
        let kept = Arc::new(Mutex::new((Vec::new(), false)));
        let shared = Arc::clone(&kept);
        let task = tokio::spawn(async move {
            let Some(mut output) = output else { return };
            let mut packet = vec![0; 16 << 10];
            // An output that cannot be read has ended.
            while let Ok(length @ 1..) = output.read(&mut packet).await {
                let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MAX_OUTPUT_BYTES - kept.0.len();
                kept.0.extend_from_slice(&packet[..length.min(room)]);
                kept.1 |= length > room;
            }
        });
        Self { task, kept }
    }

    /// What was printed, as soon as the output is closed, or without waiting longer than [`DRAIN`] for that.
    async fn finish(mut self) -> Captured {
        if timeout(DRAIN, &mut self.task).await.is_err() {
            self.task.abort();
        }
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        Captured { text: String::from_utf8_lossy(&kept.0).into_owned(), cut: kept.1 }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The program and everything it started; ended when dropped.
struct Group {
    /// Process id of the program, which is the group's; None once the group has been ended.
    leader: Option<u32>,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "read where there is /proc"))]
    marker: String,
}

impl Group {
    fn new(child: &Child, marker: String) -> Self {
        Self { leader: child.id(), marker }
    }

    fn ask_to_end(&self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::TERM);
    }

    /// Ends what is left of the group, and what has left it.
    fn kill(&mut self) {
        if self.leader.is_none() {
            return;
        }
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
        self.leader = None;
        #[cfg(target_os = "linux")]
        runaways::kill(&self.marker);
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        let leader =
            self.leader.and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        if let Some(leader) = leader {
            // Fails where the group is empty, and then there is nothing to do.
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Processes that made a session of their own to outlive the program.
#[cfg(target_os = "linux")]
mod runaways {
    use rustix::process::{Pid, Signal, kill_process};

    /// A process may be starting another while it is looked for.
    const ROUNDS: usize = 5;

    pub(super) fn kill(marker: &str) {
        for _ in 0..ROUNDS {
            let mut found = false;
            for id in marked(marker) {
                // It may have ended by itself meanwhile.
                found |= kill_process(id, Signal::KILL).is_ok();
            }
            if !found {
                return;
            }
        }
    }

    /// Processes that have the marker in their environment. Those of other users cannot be read, and are not ours.
    fn marked(marker: &str) -> Vec<Pid> {
        let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
        let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        ids.filter(|id| {
            let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            memchr::memmem::find(&environment, marker.as_bytes()).is_some()
        })
        .filter_map(Pid::from_raw)
        .collect()
    }
}

#[cfg(unix)]
fn signal_name(status: ExitStatus) -> Option<String> {
    use rustix::process::Signal;
    use std::os::unix::process::ExitStatusExt as _;

    const NAMES: [(Signal, &str); 15] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
    ];
    let number = status.signal()?;
    let known = NAMES.iter().find(|(signal, _)| signal.as_raw() == number);
    Some(known.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned()))
}

#[cfg(not(unix))]
fn signal_name(_status: ExitStatus) -> Option<String> {
    None
}
