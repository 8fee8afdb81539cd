//! A Redis or Valkey server.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::unprivileged::{command, hand_over};

/// The password of [`Redis::url`]. It must not appear in any message.
const PASSWORD: &str = "redis-canary-5d21";
/// How long the server may take to start.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long one check of whether it has started may take.
const QUICK: Duration = Duration::from_secs(1);

/// A server without persistence, on a free port of this machine.
#[derive(Debug)]
pub struct Redis {
    folder: TempDir,
    port: u16,
    server: Option<Child>,
}

impl Redis {
    /// Starts a server.
    ///
    /// # Panics
    /// Neither Redis nor Valkey is installed, or it does not start.
    pub fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("gw-redis-").tempdir_in("/tmp").expect("a folder");
        hand_over(folder.path());
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
        let port = free.expect("a free port").port();
        let mut redis = Self { folder, port, server: None };
        let settings = format!(
            "bind 127.0.0.1\nport {port}\nrequirepass {PASSWORD}\nsave \"\"\nappendonly no\nmaxmemory 64mb\ndir {}\n",
            redis.folder.path().display()
        );
        let place = redis.place("settings");
        fs::write(&place, settings).expect("a file");
        hand_over(&place);
        redis.resume();
        redis
    }

    /// Its URL, with the password.
    pub fn url(&self) -> String {
        self.url_at(self.port)
    }

    /// The same through another port, which leads to it.
    pub fn url_at(&self, port: u16) -> String {
        format!("redis://:{PASSWORD}@127.0.0.1:{port}")
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The same with a wrong password.
    pub fn url_with_wrong_password(&self) -> String {
        self.url().replace(PASSWORD, "wrong")
    }

    /// The password in [`Redis::url`].
    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// Kills the server. Its counters are lost.
    ///
    /// # Panics
    /// The system does not permit it.
    pub fn stop(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        // It may have ended meanwhile.
        _ = server.kill();
        server.wait().expect("the server's end");
    }

    /// Starts the server again.
    ///
    /// # Panics
    /// It does not start.
    pub fn resume(&mut self) {
        let log = File::options().create(true).append(true).open(self.place("log")).expect("a log");
        let mut server = command(program(), "KILL");
        server.arg(self.place("settings")).stdin(Stdio::null()).stdout(log).stderr(Stdio::null());
        self.server = Some(server.spawn().expect("setpriv of util-linux"));
        let started = Instant::now();
        while !self.answers() {
            let server = self.server.as_mut().expect("a server");
            let ended = server.try_wait().expect("its state");
            assert!(ended.is_none() && started.elapsed() < PATIENCE, "Redis does not start: {}", self.log());
            sleep(Duration::from_millis(10));
        }
    }

    /// Suspends the server: connections stay open, and nothing responds.
    ///
    /// # Panics
    /// The system does not permit it.
    pub fn hang(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes a suspended server.
    ///
    /// # Panics
    /// The system does not permit it.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// The server's reply to a command, as it is on the wire.
    ///
    /// # Panics
    /// It does not reply.
    pub fn command(&self, words: &str) -> String {
        self.execute(words).expect("an answer")
    }

    fn execute(&self, words: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(QUICK))?;
        stream.write_all(format!("AUTH {PASSWORD}\r\n{words}\r\nQUIT\r\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let answer = answer.strip_prefix("+OK\r\n").and_then(|answer| answer.strip_suffix("+OK\r\n"));
        Ok(answer.unwrap_or_default().to_owned())
    }

    fn answers(&self) -> bool {
        self.execute("PING").is_ok_and(|answer| answer == "+PONG\r\n")
    }

    fn signal(&self, signal: Signal) {
        let server = self.server.as_ref().expect("a server");
        let id = i32::try_from(server.id()).ok().and_then(Pid::from_raw).expect("the id of a process");
        kill_process(id, signal).expect("a signal");
    }

    fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.place("log")).unwrap_or_default()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Debian has one or the other.
fn program() -> PathBuf {
    let places = ["redis-server", "valkey-server"].map(|name| PathBuf::from("/usr/bin").join(name));
    let found = places.into_iter().find(|place| place.exists());
    found.expect("no server is installed: install Debian's package redis-server or valkey-server")
}
