//! Runs a program with limits: its own process group, no input, bounded output and a hard timeout. No process remains
//! after it ends.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[cfg(unix)]
use process_wrap::tokio::ProcessGroup;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use uuid::Uuid;

/// Pause between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long to wait for output after all processes that could write it have ended.
const DRAIN: Duration = Duration::from_secs(2);
/// Maximum number of bytes kept per output stream; the rest is read and dropped.
const MAX_OUTPUT_BYTES: usize = 4 << 20;
/// Marks the processes of a run, so that those that left the group are found, too.
const MARKER_VARIABLE: &str = "GATEWRIGHT_CHECK_RUN";

/// A program with its arguments and environment.
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
pub(crate) struct ProcessExit {
    /// `None` if a signal or the timeout ended it.
    pub(crate) exit_code: Option<i32>,
    /// Name of the signal that ended it.
    pub(crate) signal: Option<String>,
    pub(crate) timed_out: bool,
    pub(crate) stdout: CapturedOutput,
    pub(crate) stderr: CapturedOutput,
}

/// One output.
#[derive(Debug, Default)]
pub(crate) struct CapturedOutput {
    pub(crate) text: String,
    /// The output was truncated.
    pub(crate) cut: bool,
}

/// Runs a program until it ends or times out. Dropping the future kills all its processes immediately.
pub(super) async fn run(call: &Call, limit: Duration) -> Result<ProcessExit, NotStarted> {
    let marker = Uuid::new_v4().simple().to_string();
    let mut command = CommandWrap::with_new(&call.program, |command| {
        command
            .args(&call.arguments)
            .env_clear()
            .envs(call.environment.iter().map(|(name, value)| (name, value)))
            .env(MARKER_VARIABLE, &marker)
            .current_dir(&call.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    });
    command.wrap(KillOnDrop);
    #[cfg(unix)]
    command.wrap(ProcessGroup::leader());
    let child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => NotStarted::Missing,
        _ => NotStarted::Other(error.to_string()),
    })?;
    let mut group = Group { child, ended: false, marker };
    let stdout = Capture::begin(group.child.stdout().take());
    let stderr = Capture::begin(group.child.stderr().take());
    let (status, last_signal) = group.wait(limit).await;
    // Processes that the program left behind must not keep running or hold its outputs open.
    group.kill();
    let (stdout, stderr) = tokio::join!(stdout.finish(), stderr.finish());
    let timed_out = last_signal.is_some();
    let signal = status
        .as_ref()
        .ok()
        .and_then(|status| signal_name(*status))
        .or_else(|| last_signal.map(str::to_owned));
    let exit_code = status.ok().and_then(|status| status.code()).filter(|_| !timed_out);
    Ok(ProcessExit { exit_code, signal, timed_out, stdout, stderr })
}

/// Reads an output while the program runs.
struct Capture {
    task: JoinHandle<()>,
    captured: Arc<Mutex<(Vec<u8>, bool)>>,
}

impl Capture {
    fn begin(output: Option<impl AsyncRead + Send + Unpin + 'static>) -> Self {
        let captured = Arc::new(Mutex::new((Vec::new(), false)));
        let shared = Arc::clone(&captured);
        let task = tokio::spawn(async move {
            let Some(mut output) = output else { return };
            let mut packet = vec![0; 16 << 10];
            // An unreadable output counts as ended.
            while let Ok(length @ 1..) = output.read(&mut packet).await {
                let mut captured = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MAX_OUTPUT_BYTES - captured.0.len();
                captured.0.extend_from_slice(&packet[..length.min(room)]);
                captured.1 |= length > room;
            }
        });
        Self { task, captured }
    }

    /// The output, once it is closed, but after at most [`DRAIN`].
    async fn finish(mut self) -> CapturedOutput {
        if timeout(DRAIN, &mut self.task).await.is_err() {
            self.task.abort();
        }
        let output = std::mem::take(&mut *self.captured.lock().unwrap_or_else(PoisonError::into_inner));
        CapturedOutput { text: String::from_utf8_lossy(&output.0).into_owned(), cut: output.1 }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The program and everything it started; ended when dropped.
struct Group {
    child: Box<dyn ChildWrapper>,
    ended: bool,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "read where there is /proc"))]
    marker: String,
}

impl Group {
    /// Waits for the program to end, and ends it at the timeout; then returns the last signal that was sent.
    async fn wait(&mut self, limit: Duration) -> (io::Result<ExitStatus>, Option<&'static str>) {
        if let Ok(status) = timeout(limit, self.program_ended()).await {
            return (status, None);
        }
        self.ask_to_end();
        if let Ok(status) = timeout(GRACE, self.program_ended()).await {
            return (status, Some("SIGTERM"));
        }
        // An error means that it has ended.
        let _ = self.child.start_kill();
        (self.program_ended().await, Some("SIGKILL"))
    }

    // Waits only for the program: the wrapper's own wait covers the whole group if we are its parent, as the first
    // process of a container is.
    async fn program_ended(&mut self) -> io::Result<ExitStatus> {
        self.child.inner_mut().wait().await
    }

    fn ask_to_end(&self) {
        // Fails if the group is empty; then there is nothing to do.
        #[cfg(unix)]
        let _ = self.child.signal(rustix::process::Signal::TERM.as_raw());
    }

    /// Kills the rest of the group and the processes that have left it.
    fn kill(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        // Fails if the group is empty, as above.
        let _ = self.child.start_kill();
        #[cfg(target_os = "linux")]
        runaways::kill(&self.marker);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Processes that started their own session to outlive the program.
#[cfg(target_os = "linux")]
mod runaways {
    use rustix::process::{Pid, Signal, kill_process};

    /// Number of searches: a process may start another one during a search.
    const ROUNDS: usize = 5;

    pub(super) fn kill(marker: &str) {
        for _ in 0..ROUNDS {
            let mut found = false;
            for id in marked(marker) {
                // The process may have ended meanwhile.
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
