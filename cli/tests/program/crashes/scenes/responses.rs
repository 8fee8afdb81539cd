//! Responses: a reported response can be found, here or at the upstream that stores it, and a deleted one can't.

use serde_json::{Value, json};

use super::{ADMIN_KEY, KEY, Scene, client, document_of, text};
use crate::gateway::Serving;
use crate::http::Answer;
use crate::webhooks::wait_until;

const RESPONSES: &str = "/v1/responses";

fn question(model: &str, step: u32) -> Value {
    json!({ "model": model, "input": format!("say {step}") })
}

fn path_of(response: &Value) -> String {
    format!("{RESPONSES}/{}", text(&response["id"]))
}

/// A gateway's response for a stored response, once it is definite: a store that is slow on a busy machine causes a 503.
fn definite_response(gateway: &Serving, method: &str, path: &str) -> Option<Answer> {
    let mut answer = None;
    wait_until("the store answers", || {
        answer = client(gateway, KEY, method, path, &Value::Null);
        answer.as_ref().is_none_or(|answer| answer.status != 503)
    });
    answer
}

/// A reported response is found with its contents. `then`: called with the gateway that found it, and its path.
fn reported_response_is_found(scene: &Scene, model: &str, then: impl Fn(&Serving, &str)) {
    scene.at_each_step(5, |step| {
        let first = scene.stopping(step);
        first.begin();
        let answer = client(&first.serving, KEY, "POST", RESPONSES, &question(model, step));
        let has_stopped = first.end(|_| answer.is_some());
        if let Some(answer) = answer {
            let answer = document_of(Some(answer), 200);
            scene.with_other(|other| {
                let path = path_of(&answer);
                let found = document_of(definite_response(other, "GET", &path), 200);
                assert_eq!(found["output"], answer["output"], "step {step}");
                then(other, &path);
            });
        }
        has_stopped
    });
}

pub(in super::super) fn reported_response_is_stored(scene: &Scene) {
    reported_response_is_found(scene, "model-sol", |_, _| {});
}

/// An upstream that stores responses, and the configuration of a model there, `held`, beside one of the simulator.
pub(in super::super) fn upstream_of_responses() -> (Serving, String) {
    let upstream = Serving::start(&["--key", ADMIN_KEY], None);
    let config = format!(
        "[upstreams.far]\nkind = \"responses\"\nbase_url = \"{}/v1\"\nkey = {{ env = \"SCENE_ADMIN\" }}\n\
         [upstreams.near]\nkind = \"simulator\"\n[models.model-sol]\ntargets = [{{ upstream = \"near\" }}]\n\
         [models.held]\ntargets = [{{ upstream = \"far\", model = \"model-sol\" }}]\n",
        upstream.url
    );
    (upstream, config)
}

/// The location of a response is recorded: deleting it deletes it there.
pub(in super::super) fn reported_response_stored_upstream_is_found(scene: &Scene, upstream: &Serving) {
    reported_response_is_found(scene, "held", |other, path| {
        document_of(client(upstream, ADMIN_KEY, "GET", path, &Value::Null), 200);
        let deleted = definite_response(other, "DELETE", path).expect("an answer").status;
        assert!(deleted == 200 || deleted == 404, "{deleted}");
        document_of(client(upstream, ADMIN_KEY, "GET", path, &Value::Null), 404);
    });
}

pub(in super::super) fn deleted_response_stays_deleted(scene: &Scene) {
    scene.at_each_step(5, |step| {
        let first = scene.stopping(step);
        let answer =
            document_of(client(&first.serving, KEY, "POST", RESPONSES, &question("model-sol", step)), 200);
        let path = path_of(&answer);
        first.begin();
        let deleted = definite_response(&first.serving, "DELETE", &path);
        let has_stopped = first.end(|_| deleted.is_some());
        scene.with_other(|other| {
            let status = |method| definite_response(other, method, &path).expect("an answer").status;
            // While the outcome is unknown, it may or may not exist. After a 503, it is already gone.
            let deleted = deleted.map_or_else(|| status("DELETE"), |deleted| deleted.status);
            assert!(deleted == 200 || deleted == 404, "step {step}: {deleted}");
            assert_eq!(status("GET"), 404, "step {step}");
        });
        has_stopped
    });
}
