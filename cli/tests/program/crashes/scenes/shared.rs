//! The configuration that gateways share: a gateway runs with a complete one, wherever another gateway stopped while writing its
//! copy.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{KEY, PEPPER, SHORT, Scene, admin, client, document_of, text};
use crate::gateway::Serving;
use crate::gatewright;
use crate::webhooks::wait_until;

/// The source file that writes the copy.
const COPY: &str = "shared/copy.rs";
/// The points in it: before and after the copy is written.
const STEPS: u32 = 2;

/// The state of the copy before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// It does not exist.
    None,
    /// The copy of the previous revision.
    Whole,
    /// Half of it, which no gateway leaves behind.
    Cut,
}

/// When a gateway learns of the new revision.
#[derive(Debug, Clone, Copy)]
enum Learns {
    AtTheStart,
    AtWork,
}

/// A document with two models, so that half of it has one.
fn document(number: u32) -> String {
    let model = |letter| {
        format!("[models.{letter}-{number}]\ntargets = [{{ upstream = \"one\", model = \"model-sol\" }}]\n")
    };
    format!("[upstreams.one]\nkind = \"simulator\"\n{}{}", model('a'), model('b'))
}

/// The models of a document.
fn models_of(number: u32) -> Vec<String> {
    vec![format!("a-{number}"), format!("b-{number}")]
}

/// The models that a gateway serves.
fn models(gateway: &Serving) -> Vec<String> {
    let listed = document_of(client(gateway, KEY, "GET", "/v1/models", &Value::Null), 200);
    let models = listed["data"].as_array().expect("a list").iter();
    let mut models: Vec<String> = models.map(|model| text(&model["id"]).to_owned()).collect();
    models.sort();
    models
}

impl Scene {
    fn server(&self) -> &str {
        self.url.as_deref().expect("a server")
    }

    fn copy(&self) -> PathBuf {
        self.folder.path().join("data/shared-config.json")
    }

    /// Whether the copy matches a document.
    fn has_copy_of(&self, number: u32) -> bool {
        let copy = std::fs::read_to_string(self.copy()).ok();
        let copy: Option<Value> = copy.and_then(|copy| serde_json::from_str(&copy).ok());
        copy.is_some_and(|copy| copy["document"] == document(number))
    }

    fn make_copy(&self, before: Before) {
        match before {
            Before::None => std::fs::remove_file(self.copy()).expect("removed"),
            Before::Whole => {}
            Before::Cut => {
                let copy = std::fs::read(self.copy()).expect("a copy");
                std::fs::write(self.copy(), &copy[..copy.len() / 2]).expect("written");
            }
        }
    }

    /// Puts a document into the store.
    fn push(&self, number: u32) {
        let place = self.folder.path().join("shared.toml");
        std::fs::write(&place, document(number)).expect("written");
        let mut push = gatewright();
        push.args(["config", "push", "--store"]).arg(place);
        push.env("GATEWRIGHT_SERVE_STORE_URL", self.server()).env("GATEWRIGHT_SERVE_PEPPER", PEPPER);
        let output = push.output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Pushes the new document, while a gateway stops at a point of its copy, or at none.
    fn learn(&self, learns: Learns, before: Before, number: u32, step: u32) {
        match learns {
            Learns::AtWork => {
                let first = self.stopping(step);
                self.make_copy(before);
                first.begin();
                self.push(number);
                first.end(|_| step > STEPS && self.has_copy_of(number));
            }
            Learns::AtTheStart => {
                self.make_copy(before);
                self.push(number);
                let point = step.to_string();
                let variables = [("GATEWRIGHT_CRASH_AT", point.as_str()), ("GATEWRIGHT_CRASH_IN", COPY)];
                assert_eq!(self.serve("first", SHORT, &variables).is_none(), step <= STEPS);
            }
        }
    }

    /// Starts a gateway whose store is away. Returns its models, and whether it is ready for requests.
    fn without_the_store(&self) -> (Vec<String>, bool) {
        let (address, _) = self.server().split_once("?host=").expect("a socket");
        let nowhere = format!("{address}?host={}", self.folder.path().join("nowhere").display());
        let alone = self.serve("alone", SHORT, &[("SCENE_STORE", &nowhere)]).expect("it starts");
        let ready = client(&alone, KEY, "GET", "/health/ready", &Value::Null).expect("an answer");
        (models(&alone), ready.status == 200)
    }
}

/// A revision that was acknowledged is in use.
pub(in super::super) fn pushed_configuration_is_used(scene: &Scene) {
    let mut newest = 0;
    scene.at_each_step(5, |step| {
        let new = json!({ "document": document(step), "by": "ada" });
        let first = scene.stopping(step);
        first.begin();
        let pushed = admin(&first.serving, "POST", "/admin/config", &new);
        let has_stopped = first.end(|_| pushed.is_some());
        scene.with_other(|other| {
            // If the outcome is unknown, it is pushed again, which does not create a second revision.
            let pushed = pushed.or_else(|| admin(other, "POST", "/admin/config", &new)).expect("an answer");
            assert!(pushed.status == 200 || pushed.status == 201, "step {step}: {}", pushed.document);
            let revision = pushed.document["revision"].as_u64().expect("a number");
            assert!((newest..=newest + 1).contains(&revision), "step {step}: {revision} after {newest}");
            newest = revision;
            wait_until("it is in use", || models(other) == models_of(step));
            let found = document_of(admin(other, "GET", "/admin/config", &Value::Null), 200);
            assert_eq!((&found["revision"], &found["document"]), (&json!(revision), &json!(document(step))));
        });
        has_stopped
    });
}

/// A gateway stops before and after it writes its copy. Without the store, the next one has the previous copy or the new one;
/// with the store, it has the new one.
#[cfg(unix)]
pub(in super::super) fn gateway_starts_with_a_complete_configuration(url: String) {
    let scene = Scene { url: Some(url), shares: true, steps_of: COPY, ..Scene::in_folder() };
    let mut number = 1;
    drop(scene.serve("first", SHORT, &[]).expect("it starts"));
    scene.push(number);
    drop(scene.serve("first", SHORT, &[]).expect("it starts"));
    assert!(scene.has_copy_of(number));
    for learns in [Learns::AtTheStart, Learns::AtWork] {
        for before in [Before::None, Before::Whole, Before::Cut] {
            for step in 1..=STEPS + 1 {
                let place = format!("{learns:?}, {before:?}, step {step}");
                number += 1;
                scene.learn(learns, before, number, step);
                // Before anything is written, the previous copy is unchanged.
                let expected = match before {
                    _ if step > 1 => models_of(number),
                    Before::Whole => models_of(number - 1),
                    Before::None | Before::Cut => Vec::new(),
                };
                let (models_without, is_ready) = scene.without_the_store();
                assert_eq!(models_without, expected, "{place}");
                assert_eq!(is_ready, !expected.is_empty(), "{place}");
                let next = scene.serve("next", SHORT, &[]).expect("it starts");
                assert_eq!(models(&next), models_of(number), "{place}");
                wait_until("the copy is the new one", || scene.has_copy_of(number));
            }
        }
    }
}
