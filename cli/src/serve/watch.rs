//! Watches the files of a configuration, by looking at them each second: that sees every way in which files are replaced,
//! links to other folders included.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(1);
/// How long files that changed must stay as they are: a writer may not have finished.
const REST: Duration = Duration::from_millis(200);

/// What tells that a file has changed: its time, its size and which file it is. `None`: there is none.
type Signature = Option<(SystemTime, u64, u64)>;

/// The files and how they were when they were last read.
pub(super) struct Watch {
    seen: HashMap<PathBuf, Signature>,
}

impl Watch {
    /// Begins to watch a file: before it is read, so that no change is missed.
    pub(super) fn new(path: &Path) -> Self {
        Self { seen: HashMap::from([(path.to_owned(), look(path))]) }
    }

    /// Watches these files from now on, and no others.
    pub(super) fn set(&mut self, files: &[PathBuf]) {
        let known = |path: &PathBuf| self.seen.get(path).copied().unwrap_or_else(|| look(path));
        self.seen = files.iter().map(|path| (path.clone(), known(path))).collect();
    }

    /// Forgets how the files were: they are about to be read.
    pub(super) fn look(&mut self) {
        self.seen = self.now();
    }

    /// Resolves when one of the files has changed.
    pub(super) async fn changed(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            let mut now = self.now();
            if now == self.seen {
                continue;
            }
            loop {
                tokio::time::sleep(REST).await;
                let then = std::mem::replace(&mut now, self.now());
                if then == now {
                    return;
                }
            }
        }
    }

    fn now(&self) -> HashMap<PathBuf, Signature> {
        self.seen.keys().map(|path| (path.clone(), look(path))).collect()
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

    /// Whether a change is seen.
    async fn sees(watch: &Watch) -> bool {
        tokio::time::timeout(LOOK * 3, watch.changed()).await.is_ok()
    }

    #[tokio::test]
    async fn every_way_to_replace_a_file_is_seen_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.toml");
        std::fs::write(&path, "a = 1").expect("written");
        let mut watch = Watch::new(&path);
        assert!(!sees(&watch).await, "nothing has changed");
        std::fs::write(&path, "a = 22").expect("written");
        assert!(sees(&watch).await, "written over");
        watch.look();
        std::fs::write(folder.path().join("b"), "a = 33").expect("written");
        std::fs::rename(folder.path().join("b"), &path).expect("renamed");
        assert!(sees(&watch).await, "replaced by another file");
        watch.look();
        std::fs::remove_file(&path).expect("removed");
        assert!(sees(&watch).await, "removed");
    }

    /// As a cluster mounts a configuration: a link to a file behind a link to a folder, which is replaced.
    #[cfg(unix)]
    #[tokio::test]
    async fn a_folder_that_is_linked_elsewhere_is_seen() {
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
        assert!(sees(&watch).await);
    }
}
