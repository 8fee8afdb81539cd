//! A key that a program prints.

use std::path::Path;
use std::process::Stdio;

#[cfg(unix)]
use gatewright_config::KeyCommand;
use process_wrap::tokio::ProcessGroup;
use process_wrap::tokio::{CommandWrap, KillOnDrop};
use tokio::io::AsyncReadExt as _;

use super::no_key::{MAX_KEY_BYTES, MAX_TIME, NoKey, key_in};

/// The key that the program prints.
pub(super) async fn run(command: &KeyCommand) -> Result<String, NoKey> {
    key_in(output(&command.words, &command.folder).await?).ok_or(NoKey::NotAKey)
}

/// The output of a program. Its input is empty, and its standard error is discarded. `words`: the program and its
/// arguments. `folder`: where it runs; empty for the folder of this process.
pub(super) async fn output(words: &[String], folder: &Path) -> Result<Vec<u8>, NoKey> {
    let (program, arguments) = words.split_first().ok_or(NoKey::NotStarted)?;
    let mut wrapped = CommandWrap::with_new(program, |process| {
        process.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        if !folder.as_os_str().is_empty() {
            process.current_dir(folder);
        }
    });
    wrapped.wrap(KillOnDrop);
    #[cfg(unix)]
    wrapped.wrap(ProcessGroup::leader());
    let mut child = wrapped.spawn().map_err(|_| NoKey::NotStarted)?;
    let printing = async {
        let mut printed = Vec::new();
        let output = child.stdout().take().ok_or(NoKey::NotStarted)?;
        output.take(MAX_KEY_BYTES as u64 + 1).read_to_end(&mut printed).await.map_err(|_| NoKey::Failed)?;
        if printed.len() > MAX_KEY_BYTES {
            return Err(NoKey::NotAKey);
        }
        match child.wait().await {
            Ok(status) if status.success() => Ok(printed),
            _ => Err(NoKey::Failed),
        }
    };
    let printed = tokio::time::timeout(MAX_TIME, printing).await.unwrap_or(Err(NoKey::TooLong));
    // Also kills what it left behind in its process group.
    _ = child.start_kill();
    printed
}
