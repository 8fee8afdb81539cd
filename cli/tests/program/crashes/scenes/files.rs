//! Files: a URL that was returned serves the complete file, and files that were never reported are removed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::{KEY, SHORT, Scene, client, document_of, text};
use crate::gateway::Serving;
use crate::gatewright;
use crate::http::download;
use crate::webhooks::{Listening, wait_until};

/// Longer than files are retained, and longer than unknown files are left alone.
const LONG: Duration = Duration::from_hours(2);
/// Longer than an idempotency key waits for a gateway that died.
const LEASE: Duration = Duration::from_secs(40);
/// Gateways read their clock twenty times a second.
const READ: Duration = Duration::from_millis(150);
/// The size of a film in bytes: one full part of a write, and some more.
const FILM: usize = 6 * 1024 * 1024;

/// The paths of all files that a document names.
fn paths(document: &Value) -> Vec<String> {
    match document {
        Value::String(text) => {
            text.find("/files/").map(|place| text[place..].to_owned()).into_iter().collect()
        }
        Value::Array(all) => all.iter().flat_map(paths).collect(),
        Value::Object(members) => members.values().flat_map(paths).collect(),
        _ => Vec::new(),
    }
}

/// The contents of all files that a document names, from a gateway that need not be the one that reported it.
pub(in super::super) fn contents(gateway: &Serving, document: &Value) -> Vec<Vec<u8>> {
    let download = |path: String| {
        let (status, bytes) = download(&gateway.url, &path).expect("a complete file");
        assert!(status == 200 && !bytes.is_empty(), "{path}: {status}");
        bytes
    };
    paths(document).into_iter().map(download).collect()
}

impl Scene {
    /// Where files are stored, whichever gateway wrote them.
    fn files(&self) -> Vec<PathBuf> {
        if let Some(bucket) = &self.bucket {
            return bucket.objects();
        }
        let folder = std::fs::read_dir(self.folder.path().join("data/files")).expect("a folder");
        folder.map(|file| file.expect("a file").path()).collect()
    }

    /// How far the gateways' clock is ahead.
    fn ahead(&self) -> Duration {
        let text = std::fs::read_to_string(self.clock()).ok();
        Duration::from_millis(text.map_or(0, |text| text.parse().expect("a number")))
    }

    /// Lets this much time pass for all gateways. `age`: the statement that ages the rows of a server, whose clock is right.
    fn let_pass(&self, time: Duration, age: &str) {
        if let Some(url) = &self.url {
            let aged = Command::new("psql").args(["-qc", age, url]).status().expect("psql of Postgres");
            assert!(aged.success());
            return;
        }
        // Atomically, so that no partial file is read.
        let new = self.folder.path().join("clock.new");
        std::fs::write(&new, (self.ahead() + time).as_millis().to_string()).expect("written");
        std::fs::rename(new, self.clock()).expect("renamed");
        std::thread::sleep(READ);
    }

    fn let_files_expire(&self) {
        self.let_pass(LONG, &format!("UPDATE files SET expires = expires - {}", LONG.as_secs()));
    }

    /// Idempotency keys of gateways that died become free.
    pub(super) fn let_keys_lapse(&self) {
        self.let_pass(LEASE, &format!("UPDATE replays SET due = due - {}", LEASE.as_millis()));
    }

    /// Every recorded file exists. Call it while no gateway runs.
    fn is_sound(&self, step: u32) {
        if self.url.is_some() {
            return;
        }
        let of_store = |arguments: &[&str]| {
            let mut command = gatewright();
            command.arg("store").args(arguments).arg("--data").arg(self.folder.path().join("data"));
            let output = command.env("GATEWRIGHT_CLOCK_FROM", self.clock()).output().expect("it runs");
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(output.status.code(), Some(0), "step {step}: {printed}");
            printed
        };
        let Some(bucket) = &self.bucket else {
            of_store(&["check"]);
            return;
        };
        // It does not look into buckets.
        of_store(&["check", "--no-files"]);
        let there = bucket.objects();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("later") + self.ahead();
        for line in of_store(&["export", "-"]).lines() {
            let line: Value = serde_json::from_str(line).expect("JSON");
            let file = &line["row"];
            // The contents of an expired file are removed first.
            if line["table"] == "files" && file["expires"].as_u64().expect("a time") > now.as_secs() {
                let name = text(&file["name"]);
                assert!(there.iter().any(|object| object.ends_with(name)), "step {step}: {name}, {there:?}");
            }
        }
    }

    /// Some time later, no file is left, whatever was being written when a gateway stopped. Incomplete uploads to a bucket are
    /// not objects: a bucket rule removes them.
    fn leaves_nothing(&self) {
        self.let_files_expire();
        for file in self.files() {
            let file = std::fs::OpenOptions::new().append(true).open(file);
            // The system's clock is right.
            _ = file.and_then(|file| file.set_modified(SystemTime::now() - LONG));
        }
        let _last = self.serve("last", SHORT, &[]).expect("it starts");
        wait_until("all files are removed", || self.files().is_empty());
    }
}

/// A configuration with room for two small images, but not for four.
pub(in super::super) fn pictures() -> String {
    "[limits]\nmax_files = \"80KiB\"\nmax_percent_per_key = 100\n".to_owned()
}

/// Two images take the space of two others until they expire: they are removed and the others written, while the gateway stops at
/// one step after another.
pub(in super::super) fn reported_images_are_complete(scene: &Scene, least: u32) {
    let two = json!({ "model": "image_model_2", "prompt": "a comet", "n": 2, "size": "256x256" });
    let draw = |gateway: &Serving| client(gateway, KEY, "POST", "/v1/images/generations", &two);
    scene.at_each_step(least, |step| {
        scene.let_files_expire();
        let first = scene.stopping(step);
        let drawn = contents(&first.serving, &document_of(draw(&first.serving), 200));
        assert_eq!(drawn.len(), 2);
        scene.let_files_expire();
        first.begin();
        let others = draw(&first.serving);
        let has_stopped = first.end(|_| others.is_some());
        if let Some(others) = others {
            let others = document_of(Some(others), 200);
            scene.with_other(|other| assert!(contents(other, &others) == drawn, "step {step}: {others}"));
        }
        scene.is_sound(step);
        has_stopped
    });
    scene.leaves_nothing();
}

/// The configuration with an upstream that makes videos immediately.
pub(in super::super) fn upstream_of_films() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            // A gateway that stops reads no further.
            std::thread::spawn(move || _ = answer(socket));
        }
    });
    format!(
        "[upstreams.far]\nkind = \"responses\"\nbase_url = \"http://{address}/v1\"\nkey = {{ env = \"SCENE_ADMIN\" }}\n\
         [models.film]\nkind = \"video\"\ntargets = [{{ upstream = \"far\" }}]\n[limits]\nmax_files = \"2GiB\"\n"
    )
}

fn answer(mut socket: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(socket.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    while reader.read_line(&mut head)? > 2 {
        let line = head.lines().next_back().unwrap_or_default().to_ascii_lowercase();
        length = line.strip_prefix("content-length: ").and_then(|text| text.parse().ok()).unwrap_or(length);
    }
    reader.read_exact(&mut vec![0; length])?;
    let is_content = head.lines().next().is_some_and(|line| line.contains("/content"));
    let (kind, body) = if is_content {
        ("video/mp4", film())
    } else {
        let video = json!({ "id": "film-1", "object": "video", "created_at": 1, "model": "film",
            "status": "completed", "progress": 100, "seconds": "4", "size": "1280x720", "error": null });
        ("application/json", video.to_string().into_bytes())
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    socket.write_all(head.as_bytes())?;
    socket.write_all(&body)
}

fn film() -> Vec<u8> {
    let mut film = b"\0\0\0\x20ftypisom".to_vec();
    film.extend((0..=250).cycle().take(FILM - film.len()));
    film
}

/// The file of an upstream's video is fetched in parts, while the gateway stops at one step after another.
pub(in super::super) fn upstream_video_is_stored_completely(scene: &Scene, least: u32) {
    let request = json!({ "model": "film", "prompt": "a comet", "duration": 4 });
    accepted_video_is_stored(scene, least, request, |files| files == [film()]);
}

/// The same where the gateway makes the video.
#[cfg(unix)]
pub(in super::super) fn video_from_the_simulator_is_stored(scene: &Scene, least: u32) {
    let request =
        json!({ "model": "video_model_3", "prompt": "a comet", "duration": 3, "resolution": "720p" });
    accepted_video_is_stored(scene, least, request, |files| files.len() == 1);
}

fn accepted_video_is_stored(
    scene: &Scene,
    least: u32,
    mut request: Value,
    is_whole: impl Fn(&[Vec<u8>]) -> bool,
) {
    let mut listening = Listening::of_all();
    request["webhook_url"] = listening.url.as_str().into();
    scene.at_each_step(least, |step| {
        let first = scene.stopping(step);
        first.begin();
        let task = client(&first.serving, KEY, "POST", "/v1/videos/generations", &request);
        let task = task.map(|task| text(&document_of(Some(task), 200)["id"]).to_owned());
        let has_stopped = first.end(|_| task.as_ref().is_some_and(|task| listening.has_reported(task)));
        if let Some(task) = task {
            let path = format!("/v1/videos/generations/{task}");
            let mut ended = Value::Null;
            scene.with_other(|other| {
                wait_until("the task ends", || {
                    ended = document_of(client(other, KEY, "GET", &path, &Value::Null), 200);
                    ended["status"] == "completed" || ended["status"] == "failed"
                });
                assert!(is_whole(&contents(other, &ended)), "step {step}: {ended}");
                wait_until("the end is reported", || listening.has_reported(&task));
            });
        }
        scene.is_sound(step);
        has_stopped
    });
    scene.leaves_nothing();
}
