//! `gatewright webhooks`, and notifications that survive the gateway.

mod tls;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::gateway::Serving;
use crate::gatewright;

pub(crate) const SECRET: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
const OLD_SECRET: &str = "whsec_b2xkIHNlY3JldCBvbGQgc2VjcmV0IG9sZCBzZWNyZXQ=";

/// `gatewright webhooks listen`, stopped when dropped.
pub(crate) struct Listening {
    child: Child,
    /// The lines that it prints.
    tasks: Receiver<String>,
    seen: Vec<Value>,
    pub(crate) url: String,
}

impl Listening {
    fn start(address: &str, secret: &str) -> Self {
        let mut command = gatewright();
        command.args(["webhooks", "listen", "--listen", address]).env("GATEWRIGHT_WEBHOOK_SECRET", secret);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("a pipe")).read_line(&mut line).expect("it says where");
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).expect("an address");
        let url = url.trim_end_matches(';').to_owned();
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, tasks) = channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, tasks, seen: Vec::new(), url }
    }

    /// At a free port, with the secret of [`serve_with`].
    pub(crate) fn of_all() -> Self {
        Self::start("127.0.0.1:0", SECRET)
    }

    /// Whether the end of a task has been reported.
    pub(crate) fn has_reported(&mut self, task: &str) -> bool {
        self.times_reported(task) > 0
    }

    /// How many times it has been.
    pub(crate) fn times_reported(&mut self, task: &str) -> usize {
        let tasks = self.tasks.try_iter().map(|line| serde_json::from_str(&line).expect("a task"));
        self.seen.extend(tasks);
        self.seen.iter().filter(|task_seen| task_seen["id"] == task).count()
    }

    /// The next task that is reported.
    fn next(&mut self) -> Value {
        let line = self.tasks.recv_timeout(Duration::from_mins(1)).expect("a line");
        serde_json::from_str(&line).expect("a task")
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A gateway with a data folder, whose videos take half a second and are taken over after the same time.
fn serve(folder: &Path, secrets: &str) -> Serving {
    start(folder, &[("GATEWRIGHT_WEBHOOK_SECRET", secrets)]).expect("it starts")
}

/// The same with other variables. None if it stops before it is ready.
pub(crate) fn serve_with(folder: &Path, variables: &[(&str, &str)]) -> Option<Serving> {
    start(folder, &[&[("GATEWRIGHT_WEBHOOK_SECRET", SECRET)], variables].concat())
}

fn start(folder: &Path, variables: &[(&str, &str)]) -> Option<Serving> {
    let config = folder.join("gatewright.toml");
    let text = "[store]\ndata = \"data\"\n[videos]\nlease = \"500ms\"\n[simulator]\nvideo_time = \"500ms\"\n\
                [webhooks]\nallow_private = true\nbackoff = \"100ms\"\n";
    std::fs::write(&config, text).expect("written");
    let arguments = ["--config", config.to_str().expect("a path"), "--key", "k"];
    Serving::try_start(&arguments, variables)
}

/// The request for a video.
pub(crate) fn submission(hook: &str) -> String {
    let body = serde_json::json!({
        "model": "video_model_3", "prompt": "a comet", "duration": 3, "resolution": "720p", "webhook_url": hook,
    });
    body.to_string()
}

fn submit(gateway: &Serving, hook: &str) -> String {
    let answer = gateway.call("POST", "/v1/videos/generations", &submission(hook));
    answer["id"].as_str().expect("an id").to_owned()
}

fn status(gateway: &Serving, task: &str) -> String {
    let answer = gateway.call("GET", &format!("/v1/videos/generations/{task}"), "");
    answer["status"].as_str().expect("a status").to_owned()
}

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_mins(1), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// 3, 6: accepted work completes, and is reported, even if the gateway was killed.
#[test]
fn task_survives_the_gateway_that_accepted_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut listening = Listening::start("127.0.0.1:0", SECRET);
    let killed = serve(folder.path(), SECRET);
    let task = submit(&killed, &listening.url);
    drop(killed);

    let gateway = serve(folder.path(), SECRET);
    assert_ne!(status(&gateway, &task), "failed");
    let ended = listening.next();
    assert_eq!((&ended["id"], &ended["status"]), (&task.clone().into(), &"completed".into()));
    assert_eq!(status(&gateway, &task), "completed");
}

/// 6: a notification that no receiver accepts stays in the data folder, and can be redelivered manually.
#[test]
fn notification_survives_the_gateway_and_can_be_redelivered() {
    let folder = tempfile::tempdir().expect("a folder");
    let away = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = away.local_addr().expect("an address").to_string();
    drop(away);
    let data = folder.path().join("data");
    let data = data.to_str().expect("a path");
    let list = |arguments: &[&str]| -> Vec<Value> {
        let mut command = gatewright();
        command.args(["webhooks", "list", "--json", "--data", data]).args(arguments);
        serde_json::from_slice(&command.output().expect("it runs").stdout).expect("JSON")
    };

    let killed = serve(folder.path(), SECRET);
    let task = submit(&killed, &format!("http://{address}/secret-path"));
    wait_until("it is tried", || list(&["--status", "pending"]).iter().any(|one| one["attempts"] != 0));
    drop(killed);
    let waiting = list(&[]);
    assert_eq!((waiting.len(), &waiting[0]["task"]), (1, &task.clone().into()));
    assert_eq!(waiting[0]["receiver"], format!("http://{address}"));
    assert!(waiting[0]["problem"].is_string());

    // Receivers that know only the old secret accept notifications signed with both.
    let mut listening = Listening::start(&address, OLD_SECRET);
    let _gateway = serve(folder.path(), &format!("{SECRET} {OLD_SECRET}"));
    assert_eq!(listening.next()["id"], task);
    wait_until("it is delivered", || list(&["--status", "delivered"]).len() == 1);
    let id = waiting[0]["id"].as_str().expect("an id");
    let mut again = gatewright();
    again.args(["webhooks", "redeliver", id, "--data", data]);
    assert!(again.status().expect("it runs").success());
    assert_eq!(listening.next()["id"], task);
    let mut unknown = gatewright();
    unknown.args(["webhooks", "redeliver", "msg_0", "--data", data]);
    let output = unknown.output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no notification \"msg_0\""));

    let json = |arguments: &[&str]| -> (Option<i32>, Value) {
        let mut command = gatewright();
        let output = command.args(["webhooks"]).args(arguments).args(["--json", "--data", data]);
        let output = output.output().expect("it runs");
        (output.status.code(), serde_json::from_slice(&output.stdout).expect("JSON"))
    };
    let (code, results) = json(&["redeliver", "msg_0", id]);
    assert_eq!(
        (code, &results[0]["id"], &results[0]["redelivered"]),
        (Some(1), &"msg_0".into(), &false.into())
    );
    assert!(results[0]["error"].as_str().is_some_and(|error| error.contains("there is no notification")));
    assert_eq!(results[1], serde_json::json!({ "id": id, "redelivered": true, "error": null }));
    assert_eq!(json(&["redeliver", "--dead"]), (Some(0), serde_json::json!([])));
    let (_, secret) = json(&["secret"]);
    assert!(secret["secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")));
}

/// 6: an undeliverable notification is given up after the last attempt, however often the gateway was restarted meanwhile.
#[test]
fn undeliverable_notification_is_given_up_listed_and_redelivered_manually() {
    let folder = tempfile::tempdir().expect("a folder");
    let away = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = away.local_addr().expect("an address").to_string();
    let hook = format!("http://{address}/secret-path");
    drop(away);
    let data = folder.path().join("data");
    let list = |arguments: &[&str]| {
        let mut command = gatewright();
        command.args(["webhooks", "list", "--data", data.to_str().expect("a path")]).args(arguments);
        String::from_utf8(command.output().expect("it runs").stdout).expect("text")
    };
    let listed = |status: &str| -> Vec<Value> {
        serde_json::from_str(&list(&["--json", "--status", status])).expect("JSON")
    };
    // The time that passes between two gateways: more than the last pause.
    let time = Duration::from_hours(3).as_millis();
    let clock = folder.path().join("clock");
    let start = |times: u128| {
        std::fs::write(&clock, (times * time).to_string()).expect("written");
        serve_with(folder.path(), &[("GATEWRIGHT_CLOCK_FROM", clock.to_str().expect("a path"))])
    };
    let gateway = start(0).expect("it starts");
    let task = submit(&gateway, &hook);
    wait_until("it is tried", || listed("pending").iter().any(|one| one["attempts"] != 0));
    drop(gateway);
    for times in 1.. {
        let Some(before) = listed("pending").pop() else { break };
        assert!(listed("dead").is_empty());
        let _gateway = start(times).expect("it starts");
        wait_until("it is tried again", || {
            listed("pending").first().is_none_or(|now| now["attempts"] != before["attempts"])
        });
    }
    let dead = listed("dead");
    assert_eq!((dead.len(), &dead[0]["task"]), (1, &task.as_str().into()));
    assert_eq!((&dead[0]["status"], &dead[0]["attempts"]), (&"dead".into(), &12.into()));
    assert!(dead[0]["problem"].is_string() && dead[0]["ended"].is_u64(), "{dead:?}");
    let table = list(&["--status", "dead"]);
    assert!(table.contains("dead") && table.contains("12") && !table.contains("secret-path"), "{table}");

    // A manual redelivery sends all those that were given up.
    let redeliver_dead = || {
        let mut command = gatewright();
        command.args(["webhooks", "redeliver", "--dead", "--data", data.to_str().expect("a path")]);
        let output = command.output().expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stderr).expect("text")
    };
    let id = dead[0]["id"].as_str().expect("an id");
    let message = redeliver_dead();
    assert!(message.contains(&format!("the notification {id} will be redelivered")), "{message}");
    assert!(listed("dead").is_empty());
    let mut listening = Listening::start(&address, SECRET);
    // With the command's clock.
    let _gateway = start(0).expect("it starts");
    assert_eq!(listening.next()["id"], task);
    wait_until("it is delivered", || listed("delivered").iter().any(|one| one["id"] == id));
    let message = redeliver_dead();
    assert!(message.contains("there are no dead notifications"), "{message}");
}

/// 6: an unsigned notification is not trusted.
#[test]
fn receiver_rejects_a_signature_made_with_another_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let listening = Listening::start("127.0.0.1:0", OLD_SECRET);
    let gateway = serve(folder.path(), SECRET);
    submit(&gateway, &listening.url);
    let data = folder.path().join("data");
    wait_until("it is refused", || {
        let mut command = gatewright();
        command.args(["webhooks", "list", "--data", data.to_str().expect("a path")]);
        let listed = command.output().expect("it runs").stdout;
        String::from_utf8_lossy(&listed).contains("status 401")
    });
}
