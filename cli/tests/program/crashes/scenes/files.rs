//! Files: whoever was told an address gets all that is in the file, and what nobody was told is removed.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::{KEY, SHORT, Scene, at_each_step, client, told};
use crate::gateway::Serving;
use crate::gatewright;
use crate::http::download;
use crate::webhooks::wait_until;

/// Longer than files are kept, and than what nobody knows is left alone.
const LONG: Duration = Duration::from_hours(2);
/// Gateways read their clock twenty times a second.
const READ: Duration = Duration::from_millis(150);

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

/// What is in all files that a document names, from a gateway that need not be the one that told it.
pub(in super::super) fn contents(gateway: &Serving, document: &Value) -> Vec<Vec<u8>> {
    let download = |path: String| {
        let (status, bytes) = download(&gateway.url, &path).expect("a whole file");
        assert!(status == 200 && !bytes.is_empty(), "{path}: {status}");
        bytes
    };
    paths(document).into_iter().map(download).collect()
}

impl Scene {
    fn files(&self) -> PathBuf {
        self.folder.path().join("data/files")
    }

    /// For all gateways, so much time passes that each file expires.
    fn let_files_expire(&self) {
        let before = std::fs::read_to_string(self.clock()).ok();
        let before: u128 = before.map_or(0, |text| text.parse().expect("a number"));
        // In one step: nobody reads a half of it.
        let new = self.folder.path().join("clock.new");
        std::fs::write(&new, (before + LONG.as_millis()).to_string()).expect("written");
        std::fs::rename(new, self.clock()).expect("renamed");
        std::thread::sleep(READ);
    }

    /// What is recorded is there. While no gateway runs.
    fn is_sound(&self, step: u32) {
        if self.url.is_none() {
            let mut command = gatewright();
            command.args(["store", "check", "--data"]).arg(self.folder.path().join("data"));
            let output = command.env("GATEWRIGHT_CLOCK_FROM", self.clock()).output().expect("it runs");
            let told = String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(0), "step {step}: {told}");
        }
    }

    /// Some time later, no file is left, whatever was being written when a gateway stopped.
    fn leaves_nothing(&self) {
        self.let_files_expire();
        for file in std::fs::read_dir(self.files()).expect("a folder") {
            let file = std::fs::OpenOptions::new().append(true).open(file.expect("a file").path());
            // The system's clock is right.
            _ = file.and_then(|file| file.set_modified(SystemTime::now() - LONG));
        }
        let _last = self.serve("last", SHORT, &[]).expect("it starts");
        wait_until("all files are removed", || {
            std::fs::read_dir(self.files()).expect("a folder").next().is_none()
        });
    }
}

/// The configuration in which there is room for two small images, and not for four.
pub(in super::super) fn pictures() -> String {
    "[limits]\nmax_files = \"80KiB\"\nmax_percent_per_key = 100\n".to_owned()
}

/// Two images are in the way of two others, until they expire: they are removed and the others written, while the gateway stops at
/// one step after the other.
pub(in super::super) fn images_that_were_told_are_whole(scene: &Scene) {
    let two = json!({ "model": "image_model_2", "prompt": "a comet", "n": 2, "size": "256x256" });
    let draw = |gateway: &Serving| client(gateway, KEY, "POST", "/v1/images/generations", &two);
    at_each_step(20, |step| {
        scene.let_files_expire();
        let first = scene.stopping(step);
        let drawn = contents(&first.serving, &told(draw(&first.serving), 200));
        assert_eq!(drawn.len(), 2);
        scene.let_files_expire();
        first.begin();
        let others = draw(&first.serving);
        let has_stopped = first.end(|_| others.is_some());
        if let Some(others) = others {
            let others = told(Some(others), 200);
            scene.with_other(|other| assert!(contents(other, &others) == drawn, "step {step}: {others}"));
        }
        scene.is_sound(step);
        has_stopped
    });
    scene.leaves_nothing();
}
