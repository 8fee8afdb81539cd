//! A small separate disk, which can be filled. It is mounted in a namespace that a process keeps open, so the machine does not
//! see it, and it is gone with the process.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// Its size, as `mount` reads it.
const SIZE: &str = "48m";
/// The file that fills the disk.
const BALLAST: &str = "ballast";

/// See the module.
pub(crate) struct Disk {
    holder: Child,
    /// Its path outside of the namespace.
    place: PathBuf,
}

impl Disk {
    /// Mounts a disk over a folder. Errors: this machine does not permit it.
    pub(crate) fn mount(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let hold =
            format!("mount -t tmpfs -o size={SIZE} tmpfs \"$0\" && echo mounted && exec sleep infinity");
        let mut holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "--", "setpriv", "--pdeathsig", "KILL", "--"])
            .args(["sh", "-c", &hold])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("unshare of util-linux")?;
        let mut said = String::new();
        BufReader::new(holder.stdout.take().context("a pipe")?).read_line(&mut said)?;
        if said.trim() != "mounted" {
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
