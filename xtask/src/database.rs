//! A Postgres server for the `sql` blocks of a page: a new one, which is removed after the page. Uses no service of the
//! system, nor `tests/stores`, which includes an S3 service: this program is built before all others.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::process::{command, output};

/// Where Debian's packages put the programs, by version.
const PACKAGES: &str = "/usr/lib/postgresql";
/// The user that runs the blocks: a superuser, like an administrator.
const USER: &str = "administrator";
/// The user and group `nobody` in Debian's numbering: the server refuses to run as root.
const NOBODY: u32 = 65_534;
/// Start timeout of the server.
const PATIENCE: Duration = Duration::from_mins(1);

/// See the module.
#[derive(Debug)]
pub(crate) struct Database {
    programs: PathBuf,
    /// For its files and its socket, whose path must be short.
    folder: PathBuf,
    server: Child,
}

impl Database {
    /// Errors: Postgres is not installed, or does not start.
    pub(crate) fn start() -> Result<Self> {
        let programs = programs()?;
        let is_root = output(command("id").arg("-u"))?.trim() == "0";
        let folder = std::env::temp_dir().join(format!("gw-page-{}", std::process::id()));
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        if is_root {
            chown(&folder, Some(NOBODY), Some(NOBODY))?;
        }
        let data = folder.join("data");
        let mut make = unprivileged(is_root, &programs.join("initdb"));
        make.args(["--no-sync", "--no-locale", "--encoding=UTF8", "--auth=trust", "--username", USER]);
        output(make.arg("--pgdata").arg(&data))?;
        let mut serve = unprivileged(is_root, &programs.join("postgres"));
        serve.arg("-D").arg(&data).arg("-k").arg(&folder).args([
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
        ]);
        let log = std::fs::File::create(folder.join("log"))?;
        serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let server = serve.spawn().context("cannot start postgres")?;
        let mut database = Self { programs, folder, server };
        let started = Instant::now();
        while !database.is_ready()? {
            if database.server.try_wait()?.is_some() || started.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(database.folder.join("log")).unwrap_or_default();
                bail!("Postgres does not start: {log}");
            }
            sleep(Duration::from_millis(20));
        }
        Ok(database)
    }

    /// The folder of its programs, including `psql`.
    pub(crate) fn programs(&self) -> &Path {
        &self.programs
    }

    /// How its programs find it.
    pub(crate) fn variables(&self) -> [(&'static str, String); 3] {
        let folder = self.folder.display().to_string();
        [("PGHOST", folder), ("PGUSER", USER.to_owned()), ("PGDATABASE", "postgres".to_owned())]
    }

    fn is_ready(&self) -> Result<bool> {
        let mut ask = command(self.programs.join("pg_isready"));
        Ok(ask.arg("-q").arg("-h").arg(&self.folder).status()?.success())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Both fail only if it has already gone. Its data need not outlive the page.
        _ = self.server.kill();
        _ = self.server.wait();
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A command that ends with the thread that starts it, and does not run as root.
fn unprivileged(is_root: bool, program: &Path) -> Command {
    let mut command = command("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    if is_root {
        let nobody = NOBODY.to_string();
        command.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups"]);
    }
    command.arg("--").arg(program);
    command
}

/// The folder of the newest version's programs.
fn programs() -> Result<PathBuf> {
    let versions = std::fs::read_dir(PACKAGES).into_iter().flatten().flatten();
    let of_version = |programs: &PathBuf| {
        let version = programs.parent().and_then(Path::file_name);
        version.and_then(|version| version.to_str()?.parse::<u32>().ok())
    };
    let programs = versions.map(|version| version.path().join("bin"));
    let newest = programs.filter(|programs| programs.join("initdb").exists()).max_by_key(of_version);
    newest.context("Postgres is not installed: install Debian's package postgresql")
}
