//! What waits for a store that is away.

use serde_json::{Value, json};

use super::{KEY, Scene, client, document_of, text};
use crate::gateway::Serving;
use crate::http::ask;
use crate::webhooks::wait_until;

pub(in crate::crashes) fn responses_sent_without_the_store_are_repeated(scene: &Scene) {
    let data = scene.folder.path().join("data");
    let (database, away) = (data.join("gatewright.db"), data.join("away"));
    let waits = || {
        let files = std::fs::read_dir(data.join("spool")).into_iter().flatten();
        let paths = files.map(|file| file.expect("a file").path());
        paths.filter(|path| path.extension() != Some("lock".as_ref())).count()
    };
    scene.at_each_step(15, |step| {
        let question = json!({ "model": "model-sol", "input": format!("say {step}") });
        let submit = |gateway: &Serving| {
            let headers = format!("idempotency-key: once-{step}\r\n");
            ask(&gateway.url, ("POST", "/v1/responses"), KEY, &headers, &question.to_string())
        };
        let first = scene.stopping(step);
        let before = document_of(client(&first.serving, KEY, "POST", "/v1/responses", &question), 200);
        std::fs::rename(&database, &away).expect("taken");
        first.begin();
        let answer = submit(&first.serving);
        std::fs::rename(&away, &database).expect("put back");
        let has_stopped = first.end(|_| answer.is_some() && waits() == 0);
        scene.with_other(|other| {
            let get = |id: &Value| {
                let path = format!("/v1/responses/{}", text(id));
                let mut found = None;
                wait_until("the store is read", || {
                    found = client(other, KEY, "GET", &path, &Value::Null);
                    found.as_ref().is_some_and(|found| found.status != 503)
                });
                document_of(found, 200)
            };
            if let Some(answer) = answer {
                assert_eq!(submit(other).as_ref(), Some(&answer), "step {step}");
                let document = document_of(Some(answer), 200);
                assert_eq!(get(&document["id"])["output"], document["output"], "step {step}");
            }
            assert_eq!(get(&before["id"])["output"], before["output"], "step {step}");
            wait_until("the store has all", || waits() == 0);
        });
        has_stopped
    });
}
