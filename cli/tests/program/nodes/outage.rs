//! A gateway that is killed while its database is away.

use gatewright_test_stores::Postgres;

use super::try_node;
use crate::gateway::Serving;
use crate::http::{Answer, ask};
use crate::webhooks::wait_until;

const QUESTION: &str = r#"{"model":"model-sol","input":"say it once"}"#;
const CHAT: &str = r#"{"model":"model-sol","messages":[{"role":"user","content":"say it once"}]}"#;

fn keyed(node: &Serving, path: &str, key: &str, body: &str) -> Answer {
    let header = format!("idempotency-key: {key}\r\n");
    ask(&node.url, ("POST", path), &node.key, &header, body).expect("an answer")
}

fn call_response(node: &Serving, method: &str, id: &str) -> Answer {
    ask(&node.url, (method, &format!("/v1/responses/{id}")), &node.key, "", "").expect("an answer")
}

fn id(answer: &Answer) -> &str {
    assert_eq!(answer.status, 200, "{}", answer.document);
    answer.document["id"].as_str().expect("an id")
}

/// 2.10: responses given during the outage remain valid.
#[test]
fn responses_sent_without_the_database_survive_kill_9() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = Postgres::start();
    let data = folder.path().join("data");
    let shared = [("GATEWRIGHT_SERVE_DATA", data.to_str().expect("a path"))];
    let start = |store: &Postgres, name, more: &[_]| {
        try_node(folder.path(), store, name, "50ms", more).expect("it starts")
    };
    let first = start(&store, "first", &shared);
    let deleted = keyed(&first, "/v1/responses", "deleted", QUESTION);
    store.stop();
    let response = keyed(&first, "/v1/responses", "response", QUESTION);
    let chat = keyed(&first, "/v1/chat/completions", "chat", CHAT);
    // Other gateways still have it, so the deletion isn't reported as done.
    assert_eq!(call_response(&first, "DELETE", id(&deleted)).status, 503);
    drop(first);

    // It is killed again before the database is back, and has only responses to hand over by then.
    let second = start(&store, "second", &shared);
    assert_eq!(keyed(&second, "/v1/chat/completions", "chat", CHAT), chat);
    assert_eq!(call_response(&second, "GET", id(&response)).status, 503);
    drop(second);
    store.resume();

    let third = start(&store, "third", &shared);
    let is_consistent = |node: &Serving| {
        let mut found = call_response(node, "GET", id(&response));
        wait_until("the database is read", || {
            found = call_response(node, "GET", id(&response));
            found.status != 503
        });
        assert_eq!(found, response);
        assert_eq!(keyed(node, "/v1/responses", "response", QUESTION), response);
        assert_eq!(keyed(node, "/v1/chat/completions", "chat", CHAT), chat);
        assert_eq!(call_response(node, "GET", id(&deleted)).status, 404);
    };
    is_consistent(&third);
    let items = || {
        let files = std::fs::read_dir(data.join("spool")).expect("a folder");
        files
            .filter(|file| file.as_ref().expect("a file").path().extension() != Some("lock".as_ref()))
            .count()
    };
    wait_until("the database has all", || items() == 0);
    // A gateway that knows nothing but the database.
    is_consistent(&start(&store, "other", &[]));
}
