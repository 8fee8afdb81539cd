//! A Postgres server.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::unprivileged::{command, hand_over};

/// Where Debian's packages install the programs, by version.
const PACKAGES: &str = "/usr/lib/postgresql";
const USER: &str = "gateway";
/// The password of [`Postgres::url`]. It must not appear in any message.
const PASSWORD: &str = "pg-canary-81c0";
/// How long the server may take to start or to stop.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server with an empty database, which is reached through a Unix socket in its folder.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    folder: TempDir,
    /// The port with TLS.
    port: Option<u16>,
    server: Option<Child>,
}

impl Postgres {
    /// Creates a database and starts its server.
    ///
    /// # Panics
    /// Postgres is not installed, or does not start.
    pub fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("gw-pg-").tempdir_in("/tmp").expect("a folder");
        hand_over(folder.path());
        let mut postgres = Self { programs: programs(), folder, port: None, server: None };
        let password = postgres.place("password");
        fs::write(&password, PASSWORD).expect("a file");
        hand_over(&password);
        let mut make = command(postgres.programs.join("initdb"), "KILL");
        // A plain password: thousands of digests for each connection take long in a debug build.
        make.args(["--no-sync", "--no-locale", "--encoding=UTF8", "--auth=password", "--username", USER]);
        make.arg("--pgdata").arg(postgres.place("data")).arg("--pwfile").arg(password);
        run(make);
        postgres.resume();
        postgres
    }

    /// Also listens on a free port of this machine, with TLS only.
    ///
    /// # Panics
    /// The server does not start.
    pub fn serve_tls(&mut self, certificate: &str, key: &str) {
        self.stop();
        for (name, pem) in [("certificate", certificate), ("key", key)] {
            let place = self.place(name);
            fs::write(&place, pem).expect("a file");
            hand_over(&place);
        }
        let rules = format!("local all {USER} password\nhostssl all {USER} 127.0.0.1/32 password\n");
        fs::write(self.place("data/pg_hba.conf"), rules).expect("a file");
        let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr());
        self.port = Some(free.expect("a free port").port());
        self.resume();
    }

    /// The URL of the port that [`Postgres::serve_tls`] opens, with this host name.
    ///
    /// # Panics
    /// There is no such port.
    pub fn url_by_port(&self, host: &str) -> String {
        let port = self.port.expect("a port");
        format!("postgres://{USER}:{PASSWORD}@{host}:{port}/postgres")
    }

    /// Its URL, with user and password.
    pub fn url(&self) -> String {
        Self::url_in(self.folder.path())
    }

    /// The URL of a server whose socket is in a folder, or of a socket that leads to it.
    pub(crate) fn url_in(folder: &Path) -> String {
        format!("postgres://{USER}:{PASSWORD}@localhost/postgres?host={}", folder.display())
    }

    /// The same with a wrong password.
    pub fn url_with_wrong_password(&self) -> String {
        self.url().replace(PASSWORD, "wrong")
    }

    /// The password in [`Postgres::url`].
    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// The folder of its Unix socket.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stops the server immediately, as if it had crashed.
    ///
    /// # Panics
    /// The system does not permit it.
    pub fn stop(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        let id = i32::try_from(server.id()).ok().and_then(Pid::from_raw).expect("the id of a process");
        // A process that the server is just starting may miss the signal. The server then kills it, but only when the next signal wakes
        // it from a sleep of up to a minute.
        let mut signalled = None::<Instant>;
        while server.try_wait().expect("its state").is_none() {
            if signalled.is_none_or(|at| at.elapsed() > Duration::from_secs(1)) {
                // It may have ended meanwhile.
                _ = kill_process(id, Signal::QUIT);
                signalled = Some(Instant::now());
            }
            sleep(Duration::from_millis(5));
        }
    }

    /// Starts the server again.
    ///
    /// # Panics
    /// It does not start.
    pub fn resume(&mut self) {
        let log = File::options().create(true).append(true).open(self.place("log")).expect("a log");
        let mut server = command(self.programs.join("postgres"), "QUIT");
        server.arg("-D").arg(self.place("data")).arg("-k").arg(self.folder.path());
        if let Some(port) = self.port {
            let place = |name| self.place(name).display().to_string();
            for setting in [
                format!("port={port}"),
                format!("ssl_cert_file={}", place("certificate")),
                format!("ssl_key_file={}", place("key")),
            ] {
                server.arg("-c").arg(setting);
            }
            server.args(["-c", "ssl=on", "-c", "listen_addresses=127.0.0.1"]);
        } else {
            server.args(["-c", "listen_addresses="]);
        }
        for setting in [
            "shared_buffers=16MB",
            "max_connections=60",
            // The files of a test need not survive a crash of the machine.
            "fsync=off",
        ] {
            server.args(["-c", setting]);
        }
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.server = Some(server.spawn().expect("setpriv of util-linux"));
        let started = Instant::now();
        while !self.is_ready() {
            let server = self.server.as_mut().expect("a server");
            let ended = server.try_wait().expect("its state");
            assert!(
                ended.is_none() && started.elapsed() < PATIENCE,
                "Postgres does not start: {}",
                self.log()
            );
            sleep(Duration::from_millis(20));
        }
    }

    fn is_ready(&self) -> bool {
        let mut ask = Command::new(self.programs.join("pg_isready"));
        ask.arg("-q").arg("-h").arg(self.folder.path());
        if let Some(port) = self.port {
            ask.arg("-p").arg(port.to_string());
        }
        ask.status().expect("pg_isready").success()
    }

    fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.place("log")).unwrap_or_default()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(mut command: Command) {
    let done = command.stdin(Stdio::null()).output().expect("setpriv of util-linux");
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// The folder of the newest version's programs.
fn programs() -> PathBuf {
    let versions =
        fs::read_dir(PACKAGES).into_iter().flatten().flatten().map(|version| version.path().join("bin"));
    let of_version = |programs: &PathBuf| {
        let version = programs.parent().and_then(Path::file_name);
        version.and_then(|version| version.to_str()?.parse::<u32>().ok())
    };
    let newest = versions.filter(|programs| programs.join("initdb").exists()).max_by_key(of_version);
    newest.expect("Postgres is not installed: install Debian's package postgresql")
}
