//! Reads the configuration file again when it or a file that it names changes, and on SIGHUP.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use gatewright_gateway::{ConfigFile, Control, Log, Watch};

use super::Arguments;
use crate::exit::say;
use crate::signals::Hangups;

/// Keeps the configuration of a running gateway as its file says.
pub(super) struct Reloading {
    pub(super) arguments: Arc<Arguments>,
    pub(super) path: PathBuf,
    /// As the file asked for it at the start.
    pub(super) log: Log,
    pub(super) control: Control,
    pub(super) watch: Watch,
    pub(super) hangups: Hangups,
}

impl Reloading {
    /// Never ends by itself.
    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                () = self.watch.changed() => {}
                () = self.hangups.next() => {}
            }
            // Before the file is read, so that a change meanwhile is seen.
            self.watch.look();
            let (arguments, path) = (Arc::clone(&self.arguments), self.path.clone());
            let read = tokio::task::spawn_blocking(move || {
                let file = ConfigFile::read(&path).map_err(|problems| problems.to_string())?;
                let settled =
                    arguments.settle(file.config).map_err(|failure| failure.message().to_owned())?;
                Ok((settled.config, file.log, file.warnings, file.files))
            });
            let read = read.await.unwrap_or_else(|error| Err(error.to_string()));
            let reloaded = read.and_then(|(config, log, warnings, files)| {
                // A panic is no end of what follows the file.
                let reload =
                    AssertUnwindSafe(|| self.control.reload(&config).map_err(|error| error.to_string()));
                let mut reloaded =
                    catch_unwind(reload).unwrap_or_else(|_| Err("the gateway failed".to_owned()))?;
                self.watch.set(&files);
                reloaded.waiting.extend(self.arguments.logging.waiting(&self.log, &log));
                Ok((config, warnings, reloaded))
            });
            let path = self.path.display();
            match reloaded {
                Ok((config, warnings, reloaded)) => {
                    for warning in warnings {
                        say(&format!("warning: {warning}"));
                    }
                    say(&format!("{path} was read again: {}", config.offer()));
                    if !reloaded.replaced.is_empty() {
                        let keys = reloaded.replaced.join(", ");
                        say(&format!("a new key is in use, and the one before is refused: {keys}"));
                    }
                    if !reloaded.removed.is_empty() {
                        let keys = reloaded.removed.join(", ");
                        say(&format!("there is no such key any more, and the one before is refused: {keys}"));
                    }
                    if !reloaded.waiting.is_empty() {
                        let keys = reloaded.waiting.join(", ");
                        say(&format!("what changed here takes effect at the next start only: {keys}"));
                    }
                }
                Err(why) => {
                    say(&format!("{why}\n{path} is not used: the configuration of before stays in use"));
                }
            }
        }
    }
}
