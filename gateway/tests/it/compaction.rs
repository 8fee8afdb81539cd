//! Both forms of compaction (ours; 4), with every upstream protocol.

use std::time::{Duration, Instant};

use gatewright::types;
use gatewright_gateway::{ApiKey, Config, Kind, ModelConfig, TargetConfig};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Event, KEY, Server, read, send, start, start_with};
use crate::upstreams::{Scripted, chunks, completion, config, json_answer, stream, upstream};

const PATH: &str = "/v1/responses";
const COMPACT: &str = "/v1/responses/compact";
const ADMIN: &str = "gw-admin-canary-94";
const SUMMARY: &str = "Ada wants pears.";

/// A gateway whose model `mine` is at this upstream, with translation of responses.
async fn at(kind: Kind, provider: &Scripted) -> Server {
    let mut settings = config(vec![upstream("one", kind, &provider.url)]);
    settings.models[0].translate_responses = true;
    settings.admin_key = Some(ApiKey::new(ADMIN).expect("a key"));
    start_with(settings).await
}

fn talk() -> Value {
    json!([
        { "role": "user", "content": "I am Ada. Look for pears." },
        { "type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "c1", "output": "three pears" },
    ])
}

/// The same with a final trigger.
fn with_trigger() -> Value {
    let mut items = talk();
    items.as_array_mut().expect("items").push(json!({ "type": "compaction_trigger" }));
    items
}

/// The single item of an output, a compaction.
fn only_item(output: &Value) -> Value {
    let [item] = &output.as_array().expect("items")[..] else { panic!("{output}") };
    assert_eq!(item["type"], "compaction");
    assert!(item["id"].as_str().is_some_and(|id| id.starts_with("cmp_")), "{item}");
    // Its content is opaque.
    assert!(item["encrypted_content"].as_str().is_some_and(|text| !text.contains("Ada")), "{item}");
    item.clone()
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().filter_map(|event| event.name.as_deref()).collect()
}

/// The message texts that an upstream of the chat protocol received.
fn texts(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().expect("messages").iter();
    messages.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn compaction_works_with_every_kind_of_upstream() {
    let behind = start().await;
    let url = &behind.url;
    let mut settings = Config { upstreams: Vec::new(), models: Vec::new(), ..Config::default() };
    let kinds = [
        ("chat", Kind::Chat, format!("{url}/v1")),
        ("responses", Kind::Responses, format!("{url}/v1")),
        ("messages", Kind::Messages, format!("{url}/v1")),
        ("native", Kind::Native, format!("{url}/v1beta")),
        ("gatewright", Kind::Gatewright, url.clone()),
        ("simulator", Kind::Simulator, String::new()),
    ];
    for (name, kind, base) in &kinds {
        let mut upstream = upstream(name, *kind, base);
        upstream.keys = vec![ApiKey::new(KEY).expect("a key")];
        settings.upstreams.push(upstream);
        let mut model =
            ModelConfig::new(format!("at-{name}"), "family_one", TargetConfig::new(*name, "model-sol"));
        model.translate_responses = true;
        settings.models.push(model);
    }
    let server = start_with(settings).await;
    let mut made = Vec::new();
    for (name, ..) in &kinds {
        let model = format!("at-{name}");
        let body = json!({ "model": model, "input": talk(), "instructions": "Be kind." });
        let answer = server.ask(COMPACT, &body).await;
        serde_json::from_value::<types::CompactedResponse>(answer.clone()).expect("the generated type");
        assert_eq!(answer["object"], "response.compaction", "{name}");
        assert!(
            answer["usage"]["output_tokens"].as_u64().is_some_and(|tokens| tokens > 0),
            "{name}: {answer}"
        );
        made.push(only_item(&answer["output"]));

        let body = json!({ "model": model, "input": with_trigger(), "stream": true });
        let events = server.stream(PATH, &body).await;
        let expected = [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.output_item.done",
            "response.completed",
        ];
        assert_eq!(names(&events), expected, "{name}");
        let (done, last) = (events[3].json(), events[4].json());
        assert_eq!((&last["sequence_number"], &last["response"]["status"]), (&json!(4), &json!("completed")));
        made.push(only_item(&last["response"]["output"]));
        assert_eq!(made.last(), Some(&done["item"]));
    }
    // Every upstream continues from another one's compaction.
    for item in &made {
        for (name, ..) in &kinds {
            let input = json!([item, { "role": "user", "content": "Say figs" }]);
            let answer = server.ask(PATH, &json!({ "model": format!("at-{name}"), "input": input })).await;
            assert_eq!(answer["output"][0]["content"][0]["text"], "figs", "{name}: {answer}");
        }
    }
}

#[tokio::test]
async fn upstream_writes_the_summary_and_later_receives_it_as_a_message() {
    let provider =
        Scripted::start([json_answer(200, &completion(SUMMARY)), json_answer(200, &completion("figs"))])
            .await;
    let server = at(Kind::Chat, &provider).await;
    let look = json!({ "type": "function", "name": "look", "parameters": { "type": "object" } });
    let body = json!({ "model": "mine", "input": with_trigger(), "instructions": "Be kind.", "tools": [look],
        "tool_choice": "required", "text": { "format": { "type": "json_object" } } });
    let response = send(server.post(PATH, &body)).await;
    // The trigger is not reported as dropped.
    assert!(!response.headers().contains_key("x-gatewright-dropped"), "{:?}", response.headers());
    let answer: Value = response.json().await.expect("JSON");
    let item = only_item(&answer["output"]);
    let sent = provider.seen()[0].json();
    assert_eq!((&sent["tool_choice"], &sent["response_format"]), (&json!("none"), &Value::Null));
    assert_eq!(sent["tools"].as_array().map(Vec::len), Some(1));
    let texts_sent = texts(&sent);
    assert_eq!(texts_sent[..2], ["Be kind.", "I am Ada. Look for pears."]);
    let last = texts_sent.last().expect("an instruction");
    assert!(texts_sent.len() == 5 && last.contains("Write a summary"), "{texts_sent:?}");

    // Any gateway can read it, including one started later.
    let later = at(Kind::Chat, &provider).await;
    let input = json!([item, { "role": "user", "content": "Say figs" }]);
    let response = send(later.post(PATH, &json!({ "model": "mine", "input": input }))).await;
    assert!(!response.headers().contains_key("x-gatewright-dropped"));
    let texts_sent = texts(&provider.seen()[1].json());
    assert!(
        texts_sent.len() == 2 && texts_sent[0].ends_with(SUMMARY) && texts_sent[1] == "Say figs",
        "{texts_sent:?}"
    );
}

#[tokio::test]
async fn compaction_of_a_stored_response_replaces_its_history() {
    let provider = Scripted::start([
        json_answer(200, &completion("apples")),
        stream(&chunks(&["Ada wants", " pears."])),
        json_answer(200, &completion("figs")),
        json_answer(200, &completion(SUMMARY)),
    ])
    .await;
    let server = at(Kind::Chat, &provider).await;
    let first = server.ask(PATH, &json!({ "model": "mine", "input": "Say apples" })).await;
    let trigger = json!({ "model": "mine", "previous_response_id": first["id"], "stream": true,
        "input": [{ "type": "compaction_trigger" }] });
    let events = server.stream(PATH, &trigger).await;
    let second = events.last().expect("an event").json()["response"].clone();
    only_item(&second["output"]);
    assert_eq!(texts(&provider.seen()[1].json())[..2], ["Say apples", "apples"]);

    let next = json!({ "model": "mine", "previous_response_id": second["id"], "input": "Say figs" });
    let third = server.ask(PATH, &next).await;
    let texts_sent = texts(&provider.seen()[2].json());
    assert!(
        texts_sent.len() == 2 && texts_sent[0].ends_with(SUMMARY) && texts_sent[1] == "Say figs",
        "{texts_sent:?}"
    );

    let body = json!({ "model": "mine", "previous_response_id": third["id"] });
    let answer = server.ask(COMPACT, &body).await;
    only_item(&answer["output"]);
    let texts_sent = texts(&provider.seen()[3].json());
    assert!(texts_sent[0].ends_with(SUMMARY) && texts_sent[1..3] == ["Say figs", "figs"], "{texts_sent:?}");
    // The operation stores nothing.
    let path = format!("{PATH}/{}", answer["id"].as_str().expect("an id"));
    assert_eq!(read(server.get(&path)).await.0, 404);
}

#[tokio::test]
async fn responses_upstream_compacts_itself_and_gets_our_items_as_messages() {
    let theirs = json!({ "id": "resp_1", "object": "response.compaction", "created_at": 1, "future": [1e0],
        "output": [{ "type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA" }],
        "usage": { "input_tokens": 3, "output_tokens": 2, "total_tokens": 5 } });
    let provider = Scripted::start([json_answer(200, &theirs)]).await;
    let server = at(Kind::Responses, &provider).await;
    let foreign =
        json!([{ "type": "compaction", "encrypted_content": "gAAAA" }, { "type": "compaction_trigger" }]);
    let body = json!({ "model": "mine", "input": foreign, "future": 1 });
    for path in [COMPACT, PATH] {
        assert_eq!(server.ask(path, &body).await, theirs);
        let seen = provider.seen().pop().expect("a request");
        assert_eq!(seen.body, body.to_string().replace("mine", "theirs"));
        assert!(seen.line.starts_with(&format!("POST {path} ")), "{}", seen.line);
    }
    // A model that moved: the item was made by another upstream.
    let chat = Scripted::start([json_answer(200, &completion(SUMMARY))]).await;
    let before = at(Kind::Chat, &chat).await;
    let made = before.ask(COMPACT, &json!({ "model": "mine", "input": "Say apples" })).await;
    let item = only_item(&made["output"]);
    let input = json!([item, { "type": "ours", "id": "x" }, { "role": "user", "content": "Say figs" }]);
    for path in [COMPACT, PATH] {
        server.ask(path, &json!({ "model": "mine", "input": input, "future": 1 })).await;
        let seen = provider.seen().pop().expect("a request").json();
        assert!(seen["input"][0]["content"].as_str().is_some_and(|text| text.ends_with(SUMMARY)), "{seen}");
        assert_eq!(
            (&seen["input"][1], &seen["input"][2], &seen["future"]),
            (&input[1], &input[2], &json!(1))
        );
    }
}

#[tokio::test]
async fn foreign_compaction_item_is_reported_as_dropped() {
    let provider = Scripted::start([json_answer(200, &completion("figs"))]).await;
    let server = at(Kind::Chat, &provider).await;
    let input =
        json!([{ "type": "compaction", "encrypted_content": "gAAAA" }, { "role": "user", "content": "hi" }]);
    let response = send(server.post(PATH, &json!({ "model": "mine", "input": input }))).await;
    assert_eq!(response.headers()["x-gatewright-dropped"], "/input/0");
    let mut body = json!({ "model": "mine", "input": input });
    body["input"].as_array_mut().expect("items").push(json!({ "type": "compaction_trigger" }));
    let response = send(server.post(PATH, &body)).await;
    assert_eq!(response.headers()["x-gatewright-dropped"], "/input/0");
}

#[tokio::test]
async fn missing_summary_fails_the_compaction() {
    let mut refusal = completion("");
    refusal["choices"][0]["message"]["refusal"] = json!("No.");
    for (whole, streamed) in [(completion(" \n"), chunks(&[" "])), (refusal, chunks(&["\n", "\n"]))] {
        let provider = Scripted::start([json_answer(200, &whole)]).await;
        let server = at(Kind::Chat, &provider).await;
        // Enough failures to open the breaker, if they were the upstream's fault.
        for _ in 0..8 {
            let (status, refused) =
                server.refused(COMPACT, &json!({ "model": "mine", "input": talk() })).await;
            let message = refused["error"]["message"].as_str().expect("a message");
            assert!(status == 400 && message.contains("no summary"), "{refused}");
        }
        // The upstream bills them.
        let counted = async || {
            let usage = server.bare(Method::GET, "/admin/usage?by=model").bearer_auth(ADMIN);
            let (_, report) = read(usage).await;
            [&report["usage"][0]["requests"], &report["usage"][0]["input_tokens"]].map(Value::as_u64)
        };
        let started = Instant::now();
        while counted().await != [Some(8), Some(8 * 3)] {
            assert!(started.elapsed().as_secs() < 20, "{:?}", counted().await);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        provider.then(stream(&streamed));
        let body = json!({ "model": "mine", "input": with_trigger(), "stream": true });
        let events = server.stream(PATH, &body).await;
        let last = events.last().expect("an event");
        assert_eq!(last.name.as_deref(), Some("response.failed"));
        assert_eq!(last.json()["response"]["output"], json!([]));
        let id = last.json()["response"]["id"].as_str().expect("an id").to_owned();
        assert_eq!(read(server.get(&format!("{PATH}/{id}"))).await.0, 404);
    }
}

#[tokio::test]
async fn compaction_of_empty_input_is_rejected() {
    let provider = Scripted::start([json_answer(200, &completion("x"))]).await;
    let server = at(Kind::Chat, &provider).await;
    for (path, body) in [
        (COMPACT, json!({ "model": "mine" })),
        (COMPACT, json!({ "model": "mine", "input": [] })),
        (PATH, json!({ "model": "mine", "input": [{ "type": "compaction_trigger" }] })),
    ] {
        let (status, refused) = server.refused(path, &body).await;
        assert_eq!((status, &refused["error"]["param"]), (400, &json!("input")), "{refused}");
    }
    assert_eq!(provider.count(), 0);
}
