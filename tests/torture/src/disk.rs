//! A small separate disk, which can be filled. It is mounted in a namespace that a process keeps open, so the machine does not
//! see it, and it is gone with the process.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// How much it holds at first, in MiB.
const LEAST: u64 = 48;
/// For how many seconds of a run a MiB more is enough: files live for an hour, and the disk is to be full only while a fault lasts.
const SECONDS_PER_MIB: u64 = 2;
/// The file that fills the disk.
const BALLAST: &str = "ballast";

/// See the module.
pub(crate) struct Disk {
    holder: Child,
    /// Its path outside of the namespace.
    place: PathBuf,
}

impl Disk {
    /// Mounts a disk over a folder, with room for the files of a run of this length. Errors: this machine does not permit it.
    pub(crate) fn mount(folder: &Path, time: Duration) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let size = LEAST + time.as_secs() / SECONDS_PER_MIB;
        let hold =
            format!("mount -t tmpfs -o size={size}m tmpfs \"$0\" && echo mounted && exec sleep infinity");
        let mut holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "--", "setpriv", "--pdeathsig", "KILL", "--"])
            .args(["sh", "-c", &hold])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("unshare of util-linux")?;
        let mut line = String::new();
        BufReader::new(holder.stdout.take().context("a pipe")?).read_line(&mut line)?;
        if line.trim() != "mounted" {
            holder.wait()?;
            bail!(
                "no disk can be mounted here: unshare needs namespaces of users, which this machine does not permit"
            );
        }
        let folder = folder.strip_prefix("/").context("an absolute path")?;
        let place = Path::new("/proc").join(holder.id().to_string()).join("root").join(folder);
        Ok(Self { holder, place })
    }

    /// The command that lets a program see it, to put in front of the program.
    pub(crate) fn inside(&self) -> Vec<String> {
        let holder = self.holder.id().to_string();
        ["nsenter", "--user", "--mount", "--target", &holder, "--"].map(str::to_owned).to_vec()
    }

    /// Fills it to the last byte.
    pub(crate) fn fill(&self) -> Result<()> {
        let mut ballast = File::create(self.place.join(BALLAST))?;
        for size in [1024 * 1024, 4096, 1] {
            let piece = vec![0; size];
            while ballast.write_all(&piece).is_ok() {}
        }
        Ok(())
    }

    /// Makes room again.
    pub(crate) fn clear(&self) -> Result<()> {
        Ok(std::fs::remove_file(self.place.join(BALLAST))?)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        _ = self.holder.kill();
        _ = self.holder.wait();
    }
}
