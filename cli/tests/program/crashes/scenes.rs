//! What a gateway has reported remains true, wherever that gateway stops: at each step of the store in turn, starting when the
//! request arrives.

mod files;
mod responses;
#[cfg(unix)]
mod shared;
#[cfg(unix)]
mod spool;
mod usage;

use std::path::PathBuf;

use gatewright_test_stores::Bucket;
use serde_json::{Value, json};
use tempfile::TempDir;

#[cfg(unix)]
pub(super) use self::files::video_from_the_simulator_is_stored;
pub(super) use self::files::{
    contents, pictures, reported_images_are_complete, upstream_of_films, upstream_video_is_stored_completely,
};
pub(super) use self::responses::{
    deleted_response_stays_deleted, reported_response_is_stored, reported_response_stored_upstream_is_found,
    upstream_of_responses,
};
#[cfg(unix)]
pub(super) use self::shared::{gateway_starts_with_a_complete_configuration, pushed_configuration_is_used};
#[cfg(unix)]
pub(super) use self::spool::responses_sent_without_the_store_are_repeated;
#[cfg(unix)]
pub(super) use self::usage::usage_counts_once_when_the_gateway_shuts_down;
pub(super) use self::usage::{usage_counts_once, usage_taken_over_counts_once};
use super::stride;
use crate::gateway::Serving;
use crate::http::{Answer, ask};
use crate::webhooks::{Listening, SECRET, submission, wait_until};

const KEY: &str = "k";
const ADMIN_KEY: &str = "admin-canary-31";
/// 32 bytes in base64.
const PEPPER: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
/// How long videos take.
const SHORT: &str = "50ms";
/// More steps than any operation takes.
const MOST: u32 = 200;
/// How many times a required step is tried.
const ATTEMPTS: u32 = 3;

/// A store, in a folder or on a server.
pub(super) struct Scene {
    folder: TempDir,
    /// The server's URL.
    url: Option<String>,
    /// Additional configuration.
    more: String,
    /// Only steps in source files whose paths contain this text are counted. Empty: all are.
    steps_of: &'static str,
    /// The distance between the steps that are tried.
    stride: usize,
    /// Whether gateways share their models through the store.
    shares: bool,
    /// Where files are, if not in the folder.
    bucket: Option<Bucket>,
    /// Another gateway that uses the server.
    other: Option<Serving>,
}

/// A gateway that stops by itself.
struct Stopping {
    serving: Serving,
    begins: PathBuf,
}

impl Scene {
    pub(super) fn in_folder() -> Self {
        Self::in_folder_with(String::new())
    }

    /// With additional configuration.
    pub(super) fn in_folder_with(more: String) -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            url: None,
            more,
            steps_of: "",
            stride: stride(2),
            shares: false,
            bucket: None,
            other: None,
        }
    }

    /// On a server. Files and journals are in a folder anyway.
    #[cfg(unix)]
    pub(super) fn on_server(url: String, more: String) -> Self {
        Self { url: Some(url), ..Self::in_folder_with(more) }.with_other_started()
    }

    #[cfg(unix)]
    fn with_other_started(self) -> Self {
        let other = self.serve("other", SHORT, &[]);
        assert!(other.is_some());
        Self { other, ..self }
    }

    /// With files in a bucket. Gateways stop only at steps that change files.
    pub(super) fn with_bucket(mut self) -> Self {
        let bucket = Bucket::start(&self.folder.path().join("bucket"));
        let files = format!(
            "[files]\nurl = \"s3://{}/of/gateways\"\nendpoint = \"{}\"\n\
             access_key = {{ env = \"SCENE_BUCKET\" }}\nsecret_key = {{ env = \"SCENE_BUCKET_SECRET\" }}\n",
            Bucket::NAME,
            bucket.endpoint()
        );
        self.more.push_str(&files);
        Self { bucket: Some(bucket), steps_of: "storage/files/", ..self }
    }

    /// With only some of the steps, see [`stride`].
    pub(super) fn at_every(self, few: usize) -> Self {
        Self { stride: stride(few), ..self }
    }

    /// With only the steps of these source files.
    pub(super) fn at_steps_of(self, steps_of: &'static str) -> Self {
        Self { steps_of, ..self }
    }

    /// With models that gateways share through the store.
    #[cfg(unix)]
    pub(super) fn sharing_in_folder() -> Self {
        Self { shares: true, ..Self::in_folder() }
    }

    /// The same on a server.
    #[cfg(unix)]
    pub(super) fn sharing_on_server(url: String) -> Self {
        Self { url: Some(url), ..Self::sharing_in_folder() }.with_other_started()
    }

    /// Starts a gateway. `video_time`: how long it takes to make a video. None if it stops before it is ready.
    fn serve(&self, name: &str, video_time: &str, more: &[(&str, &str)]) -> Option<Serving> {
        let config = self.folder.path().join(format!("{name}.toml"));
        let store = match self.url {
            Some(_) => "url = { env = \"SCENE_STORE\" }\npepper = { env = \"SCENE_PEPPER\" }\n",
            None => "",
        };
        let text = format!(
            "[access]\nadmin_key = {{ env = \"SCENE_ADMIN\" }}\n[store]\ndata = \"data\"\nshared_config = {}\n{store}\
             [videos]\nlease = \"500ms\"\npoll = \"100ms\"\n[simulator]\nvideo_time = \"{video_time}\"\n\
             [webhooks]\nallow_private = true\nbackoff = \"100ms\"\n{}",
            self.shares, self.more
        );
        std::fs::write(&config, text).expect("written");
        let clock = self.clock();
        let variables = [
            ("GATEWRIGHT_CLOCK_FROM", clock.to_str().expect("a path")),
            ("SCENE_ADMIN", ADMIN_KEY),
            ("SCENE_STORE", self.url.as_deref().unwrap_or_default()),
            ("SCENE_PEPPER", PEPPER),
            ("SCENE_BUCKET", Bucket::ACCESS_KEY),
            ("SCENE_BUCKET_SECRET", Bucket::SECRET_KEY),
            ("GATEWRIGHT_WEBHOOK_SECRET", SECRET),
            // The log is not read, and must not fill its pipe.
            ("RUST_LOG", "error"),
        ];
        let arguments = ["--config", config.to_str().expect("a path"), "--key", KEY];
        Serving::try_start(&arguments, &[&variables, more].concat())
    }

    /// A gateway that stops at a step, counted from when counting begins.
    fn stopping(&self, step: u32) -> Stopping {
        let begins = self.folder.path().join(format!("begin-{step}"));
        _ = std::fs::remove_file(&begins);
        let (number, place) = (step.to_string(), begins.to_str().expect("a path"));
        let variables = [
            ("GATEWRIGHT_CRASH_AT", number.as_str()),
            ("GATEWRIGHT_CRASH_FROM", place),
            ("GATEWRIGHT_CRASH_IN", self.steps_of),
        ];
        Stopping { serving: self.serve("first", SHORT, &variables).expect("it starts"), begins }
    }

    /// The file that sets the error of the gateways' clocks.
    fn clock(&self) -> PathBuf {
        self.folder.path().join("clock")
    }

    /// Another gateway of the store. With a folder, it starts after the first one is gone.
    fn with_other<T>(&self, call: impl FnOnce(&Serving) -> T) -> T {
        match &self.other {
            Some(other) => call(other),
            None => call(&self.serve("other", SHORT, &[]).expect("it starts")),
        }
    }
}

impl Stopping {
    /// Starts counting steps.
    fn begin(&self) {
        std::fs::write(&self.begins, "").expect("written");
    }

    /// Waits until it has stopped or `is_over` returns true, then kills it. Returns whether it stopped by itself.
    fn end(mut self, mut is_over: impl FnMut(&Serving) -> bool) -> bool {
        let mut has_stopped = false;
        wait_until("it stops, or comes to the end", || {
            let is_over = is_over(&self.serving);
            has_stopped = self.serving.has_stopped();
            has_stopped || is_over
        });
        has_stopped
    }
}

impl Scene {
    /// Stops a gateway at one step after another, until no steps are left. `stops`: whether it stopped at this step. `least`: the
    /// minimum number of steps, so that missing ones are noticed. If another gateway may have taken one of them, such as the
    /// removal of expired items, that step is tried again.
    fn at_each_step(&self, least: u32, mut stops: impl FnMut(u32) -> bool) {
        let mut is_reached = |step| {
            let attempts = if step > least { 1 } else { ATTEMPTS };
            (0..attempts).any(|_| stops(step))
        };
        let mut tried = (1..MOST).step_by(self.stride);
        let survived = tried.find(|step| !is_reached(*step)).expect("it reaches the end");
        assert!(survived > least, "{least} steps at least: {survived}");
    }
}

fn admin(gateway: &Serving, method: &str, path: &str, body: &Value) -> Option<Answer> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    ask(&gateway.url, (method, path), ADMIN_KEY, "", &body)
}

fn client(gateway: &Serving, key: &str, method: &str, path: &str, body: &Value) -> Option<Answer> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    ask(&gateway.url, (method, path), key, "", &body)
}

/// The response of a running gateway.
fn document_of(answer: Option<Answer>, status: u16) -> Value {
    let answer = answer.expect("an answer");
    assert_eq!(answer.status, status, "{}", answer.document);
    answer.document
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// Waits until a gateway knows a key and responds to its secret with this status.
fn becomes(gateway: &Serving, secret: &str, status: u16) {
    wait_until("the gateway knows of the key", || {
        client(gateway, secret, "GET", "/v1/models", &Value::Null).expect("an answer").status == status
    });
}

pub(super) fn created_key_works(scene: &Scene) {
    scene.at_each_step(5, |step| {
        let new = json!({ "name": format!("made-{step}") });
        let first = scene.stopping(step);
        first.begin();
        let made = admin(&first.serving, "POST", "/admin/keys", &new);
        let has_stopped = first.end(|_| made.is_some());
        scene.with_other(|other| {
            let secret = if let Some(made) = made {
                document_of(Some(made), 201)
            } else {
                // Its secret, if there is one, is unknown. Its name can still be used.
                let again = admin(other, "POST", "/admin/keys", &new).expect("an answer");
                let path = format!("/admin/keys/made-{step}/rotate");
                let is_there = again.status == 400 && again.document["error"]["param"] == "name";
                if is_there {
                    document_of(admin(other, "POST", &path, &json!({})), 200)
                } else {
                    document_of(Some(again), 201)
                }
            };
            becomes(other, text(&secret["secret"]), 200);
        });
        has_stopped
    });
}

pub(super) fn revoked_key_is_rejected(scene: &Scene) {
    scene.at_each_step(5, |step| {
        let name = format!("revoked-{step}");
        let first = scene.stopping(step);
        let made = document_of(admin(&first.serving, "POST", "/admin/keys", &json!({ "name": name })), 201);
        first.begin();
        let path = format!("/admin/keys/{name}");
        let revoked = admin(&first.serving, "DELETE", &path, &Value::Null);
        let has_stopped = first.end(|_| revoked.is_some());
        scene.with_other(|other| {
            if revoked.is_none() {
                let again = admin(other, "DELETE", &path, &Value::Null).expect("an answer").status;
                assert!(again == 200 || again == 404, "{again}");
            }
            becomes(other, text(&made["secret"]), 401);
        });
        has_stopped
    });
}

pub(super) fn rotated_key_has_one_secret(scene: &Scene) {
    scene.at_each_step(5, |step| {
        let name = format!("rotated-{step}");
        let first = scene.stopping(step);
        let old = document_of(admin(&first.serving, "POST", "/admin/keys", &json!({ "name": name })), 201);
        first.begin();
        let path = format!("/admin/keys/{name}/rotate");
        let rotated = admin(&first.serving, "POST", &path, &json!({}));
        let has_stopped = first.end(|_| rotated.is_some());
        scene.with_other(|other| {
            // If its new secret is unknown, the key still has the old one, or gets another.
            let new = rotated.or_else(|| admin(other, "POST", &path, &json!({})));
            becomes(other, text(&document_of(new, 200)["secret"]), 200);
            becomes(other, text(&old["secret"]), 401);
        });
        has_stopped
    });
}

pub(super) fn request_repeated_with_its_key_gets_one_response(scene: &Scene) {
    scene.at_each_step(5, |step| {
        let film =
            json!({ "model": "video_model_3", "prompt": "a comet", "duration": 3, "resolution": "720p" });
        let submit = |gateway: &Serving| {
            let headers = format!("idempotency-key: once-{step}\r\n");
            ask(&gateway.url, ("POST", "/v1/videos/generations"), KEY, &headers, &film.to_string())
        };
        let first = scene.stopping(step);
        first.begin();
        let accepted = submit(&first.serving);
        let has_stopped = first.end(|_| accepted.is_some());
        scene.with_other(|other| {
            let mut again = submit(other).expect("an answer");
            if let Some(accepted) = accepted {
                assert_eq!(again, accepted);
            } else if again.status == 409 {
                // The gateway that held the key keeps its lease for a while.
                scene.let_keys_lapse();
                again = submit(other).expect("an answer");
            }
            assert_eq!(submit(other).as_ref(), Some(&again));
            let path = format!("/v1/videos/generations/{}", text(&again.document["id"]));
            let mut ended = Value::Null;
            wait_until("the task ends", || {
                ended = document_of(client(other, KEY, "GET", &path, &Value::Null), 200);
                ended["status"] == "completed"
            });
            assert_eq!(contents(other, &ended).len(), 1, "step {step}");
        });
        has_stopped
    });
}

pub(super) fn notification_due_for_redelivery_is_redelivered(scene: &Scene) {
    let mut listening = Listening::of_all();
    let mut expected = Vec::new();
    scene.at_each_step(5, |step| {
        let first = scene.stopping(step);
        let submission = serde_json::from_str(&submission(&listening.url)).expect("JSON");
        let task =
            document_of(client(&first.serving, KEY, "POST", "/v1/videos/generations", &submission), 200);
        let task = text(&task["id"]).to_owned();
        let mut message = String::new();
        wait_until("the end is reported", || {
            let listed = document_of(
                admin(&first.serving, "GET", "/admin/webhooks?status=delivered", &Value::Null),
                200,
            );
            let one = listed["webhooks"].as_array().expect("a list").iter().find(|one| one["task"] == *task);
            one.inspect(|one| text(&one["id"]).clone_into(&mut message)).is_some()
        });
        let before = listening.times_reported(&task);
        first.begin();
        let path = format!("/admin/webhooks/{message}/redeliver");
        let again = admin(&first.serving, "POST", &path, &Value::Null);
        let has_stopped = first.end(|_| listening.times_reported(&task) > before);
        if again.is_none() {
            scene.with_other(|other| document_of(admin(other, "POST", &path, &Value::Null), 200));
        }
        expected.push((task, before));
        has_stopped
    });
    // The gateway that stopped may have been about to send it; another gateway sends it once the lease has expired.
    scene.with_other(|_| {
        wait_until("all are reported again", || {
            expected.iter().all(|(task, before)| listening.times_reported(task) > *before)
        });
    });
}

/// A gateway dies with a task, and the gateway that takes it over stops at a step: a third one ends the task, once.
#[cfg(unix)]
pub(super) fn task_taken_over_twice_ends_once(url: Option<String>, steps: impl Iterator<Item = u32>) {
    let scene = Scene { url, ..Scene::in_folder() };
    let mut reached = 0;
    let mut listening = Listening::of_all();
    let mut has_stopped = true;
    for step in steps {
        reached = step;
        let film = serde_json::from_str(&submission(&listening.url)).expect("JSON");
        let dies = scene.serve("dies", "1h", &[]).expect("it starts");
        let task = document_of(client(&dies, KEY, "POST", "/v1/videos/generations", &film), 200);
        let task = text(&task["id"]).to_owned();
        // With a folder, it might lock the database permanently.
        dies.signal(if scene.url.is_some() { "-STOP" } else { "-KILL" });
        let takes_over = scene.stopping(step);
        takes_over.begin();
        has_stopped = takes_over.end(|_| listening.times_reported(&task) > 0);
        drop(dies);
        let third = scene.serve("third", SHORT, &[]).expect("it starts");
        wait_until("the end is reported", || listening.times_reported(&task) > 0);
        let listed = document_of(admin(&third, "GET", "/admin/webhooks", &Value::Null), 200);
        let notices =
            listed["webhooks"].as_array().expect("a list").iter().filter(|one| one["task"] == *task);
        assert_eq!(notices.count(), 1, "step {step}");
        let path = format!("/v1/videos/generations/{task}");
        let ended = document_of(client(&third, KEY, "GET", &path, &Value::Null), 200);
        assert_eq!(ended["status"], "completed", "step {step}: {ended}");
        assert_eq!(contents(&third, &ended).len(), 1, "step {step}");
        if !has_stopped {
            break;
        }
    }
    assert!(!has_stopped, "it comes to the end");
    assert!(reached > 25, "{reached}");
}
