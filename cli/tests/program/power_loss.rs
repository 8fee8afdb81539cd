//! What a gateway has acknowledged is still true after a power failure, whatever the disk forgot that was not synced
//! (`docs/guides/keys-and-usage.md`).

mod disk;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use self::disk::{Loss, Record};
use crate::gateway::Serving;
use crate::http::{Answer, ask, download};
use crate::run;

const KEY: &str = "client-key-of-16";
const ADMIN_KEY: &str = "admin-canary-of-31";
/// Usage is on the disk within this time: the database gets it twice a second.
const WRITTEN: Duration = Duration::from_millis(1_500);
/// The same while the database accepts nothing: the journal is synced between two attempts, each of which waits for it.
const JOURNALED: Duration = Duration::from_secs(8);
/// How many points are tried between two acknowledgements: one of this many, and all of them each night.
const FEW: usize = 12;

/// Something that a gateway has acknowledged.
struct Claim {
    what: &'static str,
    /// The point of the record at which it was acknowledged.
    from: usize,
    /// Whether it is true.
    holds: Box<dyn Fn(&Serving) -> bool>,
}

/// A gateway whose changes of files are recorded.
struct Recorded {
    folder: tempfile::TempDir,
    gateway: Serving,
    claims: Vec<Claim>,
}

/// Starts a gateway with a data folder.
fn serve(folder: &Path, data: &Path, more: &[(&str, &str)]) -> Option<Serving> {
    let config = folder.join("gatewright.toml");
    let text = format!(
        "[access]\nadmin_key = {{ env = \"POWER_ADMIN\" }}\n[store]\ndata = \"{}\"\n\
         [videos]\nlease = \"500ms\"\npoll = \"100ms\"\n[simulator]\nvideo_time = \"50ms\"\n",
        data.display()
    );
    std::fs::write(&config, text).expect("written");
    let variables = [("POWER_ADMIN", ADMIN_KEY), ("RUST_LOG", "error")];
    let arguments = ["--config", config.to_str().expect("a path"), "--key", KEY];
    Serving::try_start(&arguments, &[&variables, more].concat())
}

fn call(gateway: &Serving, key: &str, method: &str, path: &str, body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    ask(&gateway.url, (method, path), key, "", &body).expect("an answer")
}

fn document(gateway: &Serving, key: &str, method: &str, path: &str, body: &Value) -> Value {
    let answer = call(gateway, key, method, path, body);
    assert!(answer.status < 300, "{method} {path}: {}", answer.document);
    answer.document
}

fn create_key(gateway: &Serving, name: &str) -> Value {
    document(gateway, ADMIN_KEY, "POST", "/admin/keys", &json!({ "name": name }))
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// The status of a request with a key.
fn status_of(gateway: &Serving, secret: &str) -> u16 {
    call(gateway, secret, "GET", "/v1/models", &Value::Null).status
}

fn question() -> Value {
    json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "hello" }] })
}

fn repeated(gateway: &Serving) -> Value {
    let path = ("POST", "/v1/chat/completions");
    let answer = ask(&gateway.url, path, KEY, "idempotency-key: once\r\n", &question().to_string());
    answer.expect("an answer").document
}

/// How many requests of a key are counted.
fn counted(gateway: &Serving, key: &str) -> u64 {
    let report = call(gateway, ADMIN_KEY, "GET", &format!("/admin/usage?key={key}"), &Value::Null).document;
    report["usage"].as_array().into_iter().flatten().filter_map(|row| row["requests"].as_u64()).sum()
}

impl Recorded {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let library = disk::recorder(folder.path());
        let log = folder.path().join("record");
        let preloaded =
            [("LD_PRELOAD", library.to_str().expect("a path")), ("POWER_LOG", log.to_str().expect("a path"))];
        let gateway = serve(folder.path(), &data_in(folder.path()), &preloaded).expect("it starts");
        Self { folder, gateway, claims: Vec::new() }
    }

    /// From now on, this is true.
    fn claim(&mut self, what: &'static str, holds: impl Fn(&Serving) -> bool + 'static) {
        let from = self.recorded();
        self.claims.push(Claim { what, from, holds: Box::new(holds) });
    }

    /// The length of the record.
    fn recorded(&self) -> usize {
        let length = std::fs::metadata(self.folder.path().join("record")).expect("a record").len();
        usize::try_from(length).expect("a small record")
    }

    fn changes_keys(&mut self) {
        let made = text(&create_key(&self.gateway, "made")["secret"]);
        self.claim("a key that was made works", move |gateway| status_of(gateway, &made) == 200);
        let revoked = text(&create_key(&self.gateway, "revoked")["secret"]);
        document(&self.gateway, ADMIN_KEY, "DELETE", "/admin/keys/revoked", &Value::Null);
        self.claim("a key that was revoked is refused", move |gateway| status_of(gateway, &revoked) == 401);
        let old = text(&create_key(&self.gateway, "rotated")["secret"]);
        let new = document(&self.gateway, ADMIN_KEY, "POST", "/admin/keys/rotated/rotate", &json!({}));
        let new = text(&new["secret"]);
        self.claim("a key that was rotated has its new secret alone", move |gateway| {
            [&old, &new].map(|secret| status_of(gateway, secret)) == [401, 200]
        });
    }

    fn stores_responses(&mut self) {
        let body = json!({ "model": "model-sol", "input": "say something" });
        let [stored, deleted] =
            [(), ()].map(|()| document(&self.gateway, KEY, "POST", "/v1/responses", &body));
        let path_of = |response: &Value| format!("/v1/responses/{}", text(&response["id"]));
        let (path, output) = (path_of(&stored), stored["output"].clone());
        self.claim("a stored response is found", move |gateway| {
            call(gateway, KEY, "GET", &path, &Value::Null).document["output"] == output
        });
        let path = path_of(&deleted);
        document(&self.gateway, KEY, "DELETE", &path, &Value::Null);
        self.claim("a response that was deleted is gone", move |gateway| {
            call(gateway, KEY, "GET", &path, &Value::Null).status == 404
        });
        let first = repeated(&self.gateway);
        self.claim("a repeated request gets the first answer", move |gateway| repeated(gateway) == first);
    }

    fn stores_files(&mut self) {
        let body = json!({ "model": "image_model_2", "prompt": "a kite", "size": "256x256" });
        let image = document(&self.gateway, KEY, "POST", "/v1/images/generations", &body);
        let url = text(&image["data"][0]["url"]);
        let path = url.trim_start_matches(&self.gateway.url).to_owned();
        let whole = download(&self.gateway.url, &path);
        assert_eq!(whole.as_ref().map(|(status, _)| *status), Some(200));
        self.claim("a file is served", move |gateway| download(&gateway.url, &path) == whole);
        let body = json!({ "model": "video_model_1", "prompt": "a wave" });
        let task = document(&self.gateway, KEY, "POST", "/v1/videos/generations", &body);
        let path = format!("/v1/videos/generations/{}", text(&task["id"]));
        self.claim("a video that was accepted is made", move |gateway| {
            call(gateway, KEY, "GET", &path, &Value::Null).document["status"] == "completed"
        });
    }

    /// Requests of a key count, once the time has passed that usage takes.
    fn uses(&mut self, made: &Value, written: Duration, what: &'static str) {
        let (secret, id) = (text(&made["secret"]), text(&made["key"]["id"]));
        for _ in 0..3 {
            document(&self.gateway, &secret, "POST", "/v1/chat/completions", &question());
        }
        std::thread::sleep(written);
        self.claim(what, move |gateway| counted(gateway, &id) == 3);
    }

    /// The same while the database is away: the journal has it. Then the gateway is killed; returns what it leaves.
    fn uses_without_the_store(&mut self) -> Vec<(PathBuf, Vec<u8>)> {
        let made = create_key(&self.gateway, "journaled");
        let database = data_in(self.folder.path()).join("gatewright.db");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let options = SqliteConnectOptions::new().filename(database).busy_timeout(Duration::from_secs(20));
        let locked = runtime.block_on(async {
            let mut other = SqliteConnection::connect_with(&options).await.expect("a connection");
            sqlx::query("BEGIN EXCLUSIVE").execute(&mut other).await.expect("the lock");
            other
        });
        self.uses(&made, JOURNALED, "usage counts that the database did not take");
        self.gateway.child.kill().expect("it runs");
        self.gateway.child.wait().expect("its end");
        let left = files_below(&data_in(self.folder.path()));
        // The last process that uses the database tidies it up.
        drop(locked);
        left
    }

    /// Everything, and then the power fails.
    fn end(mut self) -> Failed {
        self.changes_keys();
        self.stores_responses();
        self.stores_files();
        let made = create_key(&self.gateway, "used");
        self.uses(&made, WRITTEN, "usage counts");
        let left = self.uses_without_the_store();
        let Self { folder, claims, .. } = self;
        let record = Record::read(&folder.path().join("record"));
        Failed { folder, record, left, claims }
    }
}

fn data_in(folder: &Path) -> PathBuf {
    folder.join("data")
}

/// A gateway without power.
struct Failed {
    folder: tempfile::TempDir,
    record: Record,
    /// The files that were there when the gateway was killed.
    left: Vec<(PathBuf, Vec<u8>)>,
    claims: Vec<Claim>,
}

impl Failed {
    /// Starts a gateway on what is left, and returns the claims that are not true, after some time for those that take some.
    fn restarted(&self, point: usize, loss: Loss, patience: Duration) -> Vec<&'static str> {
        let here = format!("{loss:?} at {point} of {}", self.record.end());
        let folder = tempfile::tempdir().expect("a folder");
        let data = data_in(folder.path());
        self.record.rebuild(point, loss, &data_in(self.folder.path()), &data);
        let gateway = serve(folder.path(), &data, &[]).unwrap_or_else(|| panic!("{here}: it does not start"));
        let started = std::time::Instant::now();
        let mut broken: Vec<&Claim> = self.claims.iter().filter(|claim| claim.from <= point).collect();
        loop {
            broken.retain(|claim| !(claim.holds)(&gateway));
            if broken.is_empty() || started.elapsed() > patience {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        drop(gateway);
        let check = run(&["store", "check", "--data", data.to_str().expect("a path")]);
        let found = String::from_utf8_lossy(&check.stdout);
        assert_eq!(check.status.code(), Some(0), "{here}: {found}{}", String::from_utf8_lossy(&check.stderr));
        broken.iter().map(|claim| claim.what).collect()
    }

    fn is_kept(&self, point: usize, loss: Loss) {
        let broken = self.restarted(point, loss, Duration::from_secs(20));
        assert!(broken.is_empty(), "{loss:?} at {point} of {}: {broken:?}", self.record.end());
    }
}

/// The files below a folder, without the index of SQLite's log: that is memory, and made again.
fn files_below(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_none_or(|ending| ending != "db-shm") {
                let name = path.strip_prefix(folder).expect("below it").to_owned();
                found.push((name, std::fs::read(path).expect("a file")));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn acknowledged_writes_survive_a_power_failure_at_any_point() {
    let failed = Recorded::start().end();
    // The record misses nothing that the gateway did to its files.
    let rebuilt = tempfile::tempdir().expect("a folder");
    let (was, is) = (data_in(failed.folder.path()), data_in(rebuilt.path()));
    failed.record.rebuild(failed.record.end(), Loss::Nothing, &was, &is);
    let (was, is) = (&failed.left, files_below(&is));
    let names = |files: &[(PathBuf, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(was), names(&is));
    let differing = was.iter().zip(&is).find(|(was, is)| was != is);
    assert!(differing.is_none(), "{}", differing.expect("one").0.0.display());

    for (claim, seed) in failed.claims.iter().zip(1..) {
        for loss in [Loss::All, Loss::Contents, Loss::Some(seed)] {
            failed.is_kept(claim.from, loss);
        }
    }
    let every_point = std::env::var_os("GATEWRIGHT_EVERY_STEP").is_some();
    let points = failed.record.syncs().into_iter().step_by(if every_point { 1 } else { FEW });
    for (point, seed) in points.zip(100_u64..) {
        failed.is_kept(point, if seed.is_multiple_of(2) { Loss::All } else { Loss::Some(seed) });
    }
    // The test would notice: a disk that ignores syncs loses all of it.
    let lost = failed.restarted(failed.record.end(), Loss::AllEver, Duration::ZERO);
    let unlost: Vec<&str> =
        failed.claims.iter().map(|claim| claim.what).filter(|what| !lost.contains(what)).collect();
    // An unknown key or response was never acknowledged.
    assert_eq!(unlost, ["a key that was revoked is refused", "a response that was deleted is gone"]);
}
