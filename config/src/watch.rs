//! Watches the files of a configuration by polling: that notices every way of replacing files, including links to other
//! folders.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Polling interval.
const LOOK: Duration = Duration::from_secs(1);
/// How long changed files must stay unchanged: a writer may not have finished.
const REST: Duration = Duration::from_millis(200);

/// Identifies a file's version: its time, its size and its identity. `None`: it is missing.
type Signature = Option<(SystemTime, u64, u64)>;

/// The files, with their versions when they were last read and at the last poll.
#[derive(Debug, Default)]
pub struct Watch {
    read: HashMap<PathBuf, Signature>,
    seen: HashMap<PathBuf, Signature>,
}

impl Watch {
    /// Starts watching a file. Call this before reading it, so that no change is missed.
    pub fn new(path: &Path) -> Self {
        let read = HashMap::from([(path.to_owned(), look(path))]);
        Self { seen: read.clone(), read }
    }

    /// Watches these files from now on, and no others.
    pub fn set(&mut self, files: &[PathBuf]) {
        let known = |path: &PathBuf| self.read.get(path).copied().unwrap_or_else(|| look(path));
        self.read = files.iter().map(|path| (path.clone(), known(path))).collect();
        self.seen = self.read.clone();
    }

    /// Also watches these files. Returns whether one of them was not watched before: it may have changed since it
    /// was read.
    pub fn add(&mut self, files: &[PathBuf]) -> bool {
        let mut is_new = false;
        for path in files.iter().filter(|path| !self.read.contains_key(*path)).collect::<Vec<_>>() {
            let now = look(path);
            self.read.insert(path.clone(), now);
            self.seen.insert(path.clone(), now);
            is_new = true;
        }
        is_new
    }

    /// Records the current versions: the files are about to be read.
    pub fn look(&mut self) {
        self.read = self.now();
        self.seen = self.read.clone();
    }

    /// Polls the files. Returns whether one of them has changed since it was read, and none since the last
    /// poll.
    pub fn has_changed(&mut self) -> bool {
        let now = self.now();
        let rests = now == self.seen;
        self.seen = now;
        rests && self.seen != self.read
    }

    /// Resolves when one of the files has changed.
    pub async fn changed(&mut self) {
        loop {
            let moves = self.seen != self.read;
            tokio::time::sleep(if moves { REST } else { LOOK }).await;
            if self.has_changed() {
                return;
            }
        }
    }

    fn now(&self) -> HashMap<PathBuf, Signature> {
        self.read.keys().map(|path| (path.clone(), look(path))).collect()
    }
}

fn look(path: &Path) -> Signature {
    let file = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let id = std::os::unix::fs::MetadataExt::ino(&file);
    #[cfg(not(unix))]
    let id = 0;
    Some((file.modified().ok()?, file.len(), id))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a change is noticed.
    async fn sees(watch: &mut Watch) -> bool {
        tokio::time::timeout(LOOK * 3, watch.changed()).await.is_ok()
    }

    #[tokio::test]
    async fn watch_detects_overwrite_replacement_and_removal() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.toml");
        std::fs::write(&path, "a = 1").expect("written");
        let mut watch = Watch::new(&path);
        assert!(!sees(&mut watch).await, "nothing has changed");
        std::fs::write(&path, "a = 22").expect("written");
        assert!(sees(&mut watch).await, "written over");
        watch.look();
        std::fs::write(folder.path().join("b"), "a = 33").expect("written");
        std::fs::rename(folder.path().join("b"), &path).expect("renamed");
        assert!(sees(&mut watch).await, "replaced by another file");
        watch.look();
        std::fs::remove_file(&path).expect("removed");
        assert!(sees(&mut watch).await, "removed");
    }

    #[tokio::test]
    async fn watch_detects_a_missing_file_when_it_appears() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.toml");
        std::fs::write(&path, "a = 1").expect("written");
        let mut watch = Watch::new(&path);
        let missing = [path, folder.path().join("key")];
        assert!(watch.add(&missing), "one is new");
        assert!(!watch.add(&missing), "all are known");
        assert!(!sees(&mut watch).await, "nothing has changed");
        std::fs::write(&missing[1], "k").expect("written");
        assert!(sees(&mut watch).await, "it has appeared");
    }

    /// The way a cluster mounts a configuration: a link to a file behind a link to a folder, which is
    /// replaced.
    #[cfg(unix)]
    #[tokio::test]
    async fn watch_detects_a_retargeted_symlink() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for version in ["1", "2"] {
            std::fs::create_dir(at(version)).expect("made");
            std::fs::write(at(version).join("a.toml"), version).expect("written");
        }
        symlink(at("1"), at("data")).expect("linked");
        symlink(at("data").join("a.toml"), at("a.toml")).expect("linked");
        let mut watch = Watch::new(&at("a.toml"));
        watch.set(&[at("a.toml")]);
        symlink(at("2"), at("new")).expect("linked");
        std::fs::rename(at("new"), at("data")).expect("renamed");
        assert!(sees(&mut watch).await);
    }
}
