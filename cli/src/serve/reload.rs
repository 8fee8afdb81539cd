//! Reloads the configuration file when it or a file that it refers to changes, and on SIGHUP.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use gatewright_gateway::{ApiKey, Config, ConfigFile, Control, Log, Problem, Watch};

use super::ServeArguments;
use crate::exit::print_message;
use crate::signals::Hangups;

/// Keeps the configuration of a running gateway in sync with its file.
pub(super) struct Reloading {
    pub(super) arguments: Arc<ServeArguments>,
    pub(super) path: PathBuf,
    /// The log settings at the start.
    pub(super) log: Log,
    /// The saved key, if no other was given at the start.
    pub(super) local_key: Option<ApiKey>,
    pub(super) control: Control,
    pub(super) watch: Watch,
    pub(super) hangups: Hangups,
}

/// Why the file is not used.
struct ReloadError {
    why: String,
    /// Line and column of the first problem, from 1.
    place: Option<(usize, usize)>,
}

impl From<String> for ReloadError {
    fn from(why: String) -> Self {
        Self { why, place: None }
    }
}

/// The content of the file, with the command line applied.
struct ReadConfig {
    config: Config,
    log: Log,
    warnings: Vec<Problem>,
    files: Vec<PathBuf>,
}

impl Reloading {
    /// Never ends by itself.
    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                () = self.watch.changed() => {}
                () = self.hangups.next() => {}
            }
            let reloaded = self.read().await.and_then(|read| {
                // A panic must not stop the watching of the file.
                let reload =
                    AssertUnwindSafe(|| self.control.reload(&read.config).map_err(|error| error.to_string()));
                let mut reloaded = catch_unwind(reload)
                    .unwrap_or_else(|_| Err("the gateway failed".to_owned()))
                    .map_err(ReloadError::from)?;
                self.watch.set(&read.files);
                reloaded.waiting.extend(self.arguments.logging.waiting(&self.log, &read.log));
                Ok((read.config, read.warnings, reloaded))
            });
            let path = self.path.display();
            match reloaded {
                Ok((config, warnings, reloaded)) => {
                    for warning in warnings {
                        print_message(&format!("warning: {warning}"));
                    }
                    print_message(&format!("reloaded {path}: {}", config.offer()));
                    if !reloaded.replaced.is_empty() {
                        let keys = reloaded.replaced.join(", ");
                        print_message(&format!("replaced keys, whose old values are now rejected: {keys}"));
                    }
                    if !reloaded.removed.is_empty() {
                        let keys = reloaded.removed.join(", ");
                        print_message(&format!("removed keys, which are now rejected: {keys}"));
                    }
                    self.control.set_restart_needed(!reloaded.waiting.is_empty());
                    if !reloaded.waiting.is_empty() {
                        let keys = reloaded.waiting.join(", ");
                        print_message(&format!("changes that take effect only after a restart: {keys}"));
                    }
                }
                Err(ReloadError { why, place }) => {
                    self.control.mark_stale(place);
                    print_message(&format!(
                        "{why}\ncannot reload {path}: the previous configuration stays in use"
                    ));
                }
            }
        }
    }

    /// Reads the file. From now on, the files it refers to are watched, even if it is rejected: a missing secret may
    /// appear.
    async fn read(&mut self) -> Result<ReadConfig, ReloadError> {
        loop {
            // Before the file is read, so that a change in the meantime is noticed.
            self.watch.look();
            let (arguments, path) = (Arc::clone(&self.arguments), self.path.clone());
            let local_key = self.local_key.clone();
            let read = tokio::task::spawn_blocking(move || {
                let file = match ConfigFile::read(&path) {
                    Ok(file) => file,
                    Err(problems) => {
                        let place = problems.as_ref().first().and_then(|problem| problem.place);
                        return (
                            problems.files().to_vec(),
                            Err(ReloadError { why: problems.to_string(), place }),
                        );
                    }
                };
                if file.is_blank {
                    let why = format!("{}: the file is empty: restore its content", path.display());
                    return (file.files, Err(why.into()));
                }
                let mut settled = match arguments.settle(file.config) {
                    Ok(settled) => settled,
                    Err(failure) => return (file.files, Err(failure.message().to_owned().into())),
                };
                settled.config.key = settled.config.key.or(local_key);
                let (log, warnings, files) = (file.log, file.warnings, file.files);
                (files.clone(), Ok(ReadConfig { config: settled.config, log, warnings, files }))
            });
            let (files, read) =
                read.await.unwrap_or_else(|error| (Vec::new(), Err(error.to_string().into())));
            // A file that was not watched yet may have changed after it was read.
            if !self.watch.add(&files) {
                return read;
            }
        }
    }
}
