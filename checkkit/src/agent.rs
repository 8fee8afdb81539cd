//! The agent: a command-line program that speaks the responses protocol, run once and isolated from its user's
//! configuration. `command` builds the command line, `process` limits the process, `transcript` parses its output.

mod command;
mod process;
mod transcript;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

pub(crate) use self::command::{BASE_ENVIRONMENT, PROGRAM};
pub(crate) use self::process::{CapturedOutput, NotStarted, ProcessExit};
pub(crate) use self::transcript::Transcript;

use gatewright::ApiKey;

/// Timeout of asking the program for its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum length of a version, in characters.
const MAX_VERSION_CHARS: usize = 64;

/// The program of a run and its input.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) program: PathBuf,
    /// Variables passed on from the kit's environment, with their values.
    pub(crate) passed: Vec<(String, OsString)>,
    pub(crate) timeout: Duration,
    pub(crate) key: ApiKey,
    /// Endpoint and base path.
    pub(crate) base_url: String,
    pub(crate) version: Option<String>,
}

/// One run: the command line, without secrets, and how it ended.
#[derive(Debug)]
pub(crate) struct AgentRun {
    /// Program and arguments.
    pub(crate) command_line: Vec<String>,
    /// Names of the environment variables.
    pub(crate) environment: Vec<String>,
    pub(crate) ended: Result<ProcessExit, NotStarted>,
}

impl Agent {
    /// Asks the program for its version; `None` if it does not print one.
    pub(crate) async fn ask_version(&mut self) {
        let Ok(places) = TempFolders::new() else { return };
        let mut call = self.call(&places);
        call.arguments = vec!["--version".to_owned()];
        let ended = process::run(&call, VERSION_TIMEOUT).await;
        self.version = ended.ok().filter(|ended| ended.exit_code == Some(0)).and_then(|ended| {
            let first = ended.stdout.text.lines().next()?.to_owned();
            version_in(&first).map(str::to_owned)
        });
    }

    /// Runs the program on a prompt in an empty folder.
    pub(crate) async fn run(&self, model: &str, prompt: &str) -> AgentRun {
        let places = match TempFolders::new() {
            Ok(places) => places,
            Err(error) => {
                let ended = Err(NotStarted::Other(format!("no temporary folder: {error}")));
                return AgentRun { command_line: Vec::new(), environment: Vec::new(), ended };
            }
        };
        let mut call = self.call(&places);
        call.arguments = command::arguments(&self.base_url, model, places.work.path(), prompt);
        let ended = process::run(&call, self.timeout).await;
        let program = self.program.display().to_string();
        AgentRun {
            command_line: std::iter::once(program).chain(call.arguments).collect(),
            environment: call.environment.into_iter().map(|(name, _)| name).collect(),
            ended,
        }
    }

    fn call(&self, places: &TempFolders) -> process::Call {
        process::Call {
            program: self.program.clone(),
            arguments: Vec::new(),
            folder: places.work.path().to_owned(),
            environment: command::environment(&self.passed, places.home.path(), &self.key),
        }
    }
}

/// Empty folders, removed when dropped.
struct TempFolders {
    home: TempDir,
    work: TempDir,
}

impl TempFolders {
    fn new() -> std::io::Result<Self> {
        let folder = |prefix: &str| tempfile::Builder::new().prefix(prefix).tempdir();
        Ok(Self { home: folder("gatewright-agent-home-")?, work: folder("gatewright-agent-work-")? })
    }
}

/// The absolute path of a program given as a path; a bare name is looked up on the PATH when it is run.
pub(crate) fn resolve(program: &Path) -> PathBuf {
    // The program runs in another folder, so a relative path must become absolute.
    if program.components().count() > 1 {
        std::path::absolute(program).unwrap_or_else(|_| program.to_owned())
    } else {
        program.to_owned()
    }
}

/// The last word that has a digit in it: `agent-cli 0.169.0`.
fn version_in(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().filter(|word| word.chars().count() <= MAX_VERSION_CHARS);
    words.rfind(|word| word.contains(|letter: char| letter.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_the_last_word_with_a_digit() {
        assert_eq!(version_in("agent-cli 0.169.0"), Some("0.169.0"));
        assert_eq!(version_in("v1.2"), Some("v1.2"));
        assert_eq!(version_in("agent (unknown)"), None);
        assert_eq!(version_in(&"1".repeat(65)), None);
    }

    #[test]
    fn program_path_is_made_absolute() {
        assert_eq!(resolve(Path::new("agent")), Path::new("agent"));
        assert!(resolve(Path::new("./agent")).is_absolute());
        assert_eq!(resolve(Path::new("/bin/agent")), Path::new("/bin/agent"));
    }
}
