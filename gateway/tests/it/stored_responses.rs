//! Stored responses (ours): retrieved, listed, deleted.

use gatewright::types;
use gatewright_gateway::{Config, Kind};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{KEY, Server, read, send, start, start_with};
use crate::upstreams::{Scripted, chunks, completion, config, json_answer, stream, upstream};

const PATH: &str = "/v1/responses";

async fn delete(server: &Server, id: &str) -> (u16, Value) {
    read(server.bare(Method::DELETE, &format!("{PATH}/{id}")).bearer_auth(KEY)).await
}

/// A conversation of two responses; the second one had three input items.
async fn two_turns(server: &Server) -> (Value, Value) {
    let first = server.ask(PATH, &json!({ "model": "model-sol", "input": "Say apples" })).await;
    let second = json!({ "model": "model-sol", "previous_response_id": first["id"], "input": [{ "role": "user", "content": "Say pears" }] });
    let second = server.ask(PATH, &second).await;
    (first, second)
}

fn id(response: &Value) -> &str {
    response["id"].as_str().expect("an id")
}

#[tokio::test]
async fn stored_response_is_retrieved_unchanged() {
    let server = start().await;
    let (first, second) = two_turns(&server).await;
    for made in [&first, &second] {
        let (status, retrieved) = read(server.get(&format!("{PATH}/{}", id(made)))).await;
        assert_eq!((status, &retrieved), (200, made));
    }
    let body = json!({ "model": "model-sol", "input": "Say plums", "stream": true });
    let events = server.stream(PATH, &body).await;
    let last = events[events.len() - 2].json()["response"].clone();
    assert_eq!(read(server.get(&format!("{PATH}/{}", id(&last)))).await, (200, last));
}

#[tokio::test]
async fn unstored_and_unknown_responses_are_404() {
    let server = start().await;
    let body = json!({ "model": "model-sol", "input": "Say apples", "store": false });
    let made = server.ask(PATH, &body).await;
    for id in [id(&made), "resp_unknown"] {
        for path in [format!("{PATH}/{id}"), format!("{PATH}/{id}/input_items")] {
            let (status, body) = read(server.get(&path)).await;
            assert_eq!((status, &body["error"]["code"]), (404, &json!("not_found")), "{path}: {body}");
            assert_eq!(body["error"]["param"], "response_id");
        }
        assert_eq!(delete(&server, id).await.0, 404);
        let next = json!({ "model": "model-sol", "input": "x", "previous_response_id": id });
        for path in [PATH, "/v1/responses/compact"] {
            let (status, body) = server.refused(path, &next).await;
            assert_eq!((status, &body["error"]["code"]), (400, &json!("previous_response_not_found")));
            assert_eq!(body["error"]["param"], "previous_response_id");
            // The id is not repeated: it may be arbitrarily long.
            assert!(!body.to_string().contains(id), "{body}");
        }
    }
}

#[tokio::test]
async fn deleted_response_is_gone_and_its_successors_remain() {
    let server = start().await;
    let (first, second) = two_turns(&server).await;
    let (status, body) = delete(&server, id(&first)).await;
    assert_eq!((status, &body), (200, &json!({ "id": first["id"], "object": "response", "deleted": true })));
    assert_eq!(read(server.get(&format!("{PATH}/{}", id(&first)))).await.0, 404);
    assert_eq!(delete(&server, id(&first)).await.0, 404);
    assert_eq!(read(server.get(&format!("{PATH}/{}", id(&second)))).await.0, 200);
    let next = json!({ "model": "model-sol", "input": "Say figs", "previous_response_id": second["id"] });
    server.ask(PATH, &next).await;
}

async fn page(server: &Server, response: &Value, query: &str) -> Value {
    let (status, body) = read(server.get(&format!("{PATH}/{}/input_items{query}", id(response)))).await;
    assert_eq!(status, 200, "{body}");
    serde_json::from_value::<types::ResponseItemList>(body.clone()).expect("the generated type");
    body
}

fn texts(page: &Value) -> Vec<&str> {
    let items = page["data"].as_array().expect("items");
    items.iter().map(|item| item["content"][0]["text"].as_str().expect("text")).collect()
}

#[tokio::test]
async fn input_items_cover_the_whole_conversation() {
    let server = start().await;
    let (first, second) = two_turns(&server).await;
    let all = page(&server, &second, "").await;
    // Newest first.
    assert_eq!(texts(&all), ["Say pears", "apples", "Say apples"]);
    assert_eq!((&all["object"], &all["has_more"]), (&json!("list"), &json!(false)));
    assert_eq!((&all["first_id"], &all["last_id"]), (&all["data"][0]["id"], &all["data"][2]["id"]));
    assert_eq!(all["data"][1], first["output"][0]);
    assert_eq!(all["data"][2]["content"], json!([{ "type": "input_text", "text": "Say apples" }]));
    assert!(all["data"][0]["id"].as_str().is_some_and(|id| id.starts_with("msg_")));
    assert_eq!(page(&server, &second, "").await, all);
    assert_eq!(texts(&page(&server, &second, "?order=asc").await), ["Say apples", "apples", "Say pears"]);
}

#[tokio::test]
async fn input_items_are_paginated() {
    let server = start().await;
    let (_, second) = two_turns(&server).await;
    let first_page = page(&server, &second, "?order=asc&limit=2").await;
    assert_eq!((texts(&first_page), &first_page["has_more"]), (vec!["Say apples", "apples"], &json!(true)));
    let last = first_page["last_id"].as_str().expect("an id");
    let next = page(&server, &second, &format!("?order=asc&limit=2&after={last}")).await;
    assert_eq!((texts(&next), &next["has_more"]), (vec!["Say pears"], &json!(false)));
    let end = next["last_id"].as_str().expect("an id");
    let empty = page(&server, &second, &format!("?order=asc&after={end}")).await;
    assert_eq!((texts(&empty), &empty["first_id"], &empty["last_id"]), (vec![], &Value::Null, &Value::Null));
    // Backward: the page adjacent to the item.
    let before = page(&server, &second, &format!("?order=asc&limit=1&before={end}")).await;
    assert_eq!((texts(&before), &before["has_more"]), (vec!["apples"], &json!(true)));
    let between = page(&server, &second, &format!("?order=asc&after={last}&before={end}")).await;
    assert_eq!(texts(&between), [""; 0]);
}

#[tokio::test]
async fn items_with_duplicate_or_malformed_ids_are_paginated() {
    let server = start().await;
    let input = json!([
        { "role": "user", "content": "Say apples" },
        { "type": "ours", "id": "a" },
        { "type": "ours", "id": "a" },
        { "type": "ours", "id": 7 },
        { "type": "ours", "id": "b" },
    ]);
    let made = server.ask(PATH, &json!({ "model": "model-sol", "input": input })).await;
    let (mut ids, mut query) = (Vec::new(), "?order=asc&limit=1".to_owned());
    while ids.len() < 10 {
        let (status, page) = read(server.get(&format!("{PATH}/{}/input_items{query}", id(&made)))).await;
        assert_eq!(status, 200, "{page}");
        let last = page["last_id"].as_str().expect("an id").to_owned();
        query = format!("?order=asc&limit=1&after={last}");
        ids.push(last);
        if page["has_more"] == false {
            break;
        }
    }
    assert_eq!((ids.len(), ids[1].as_str(), ids[4].as_str()), (5, "a", "b"), "{ids:?}");
    assert!(ids[2].starts_with("item_") && ids[3].starts_with("item_"), "{ids:?}");
}

#[tokio::test]
async fn response_at_maximum_depth_is_retrieved_and_continued() {
    let server = start().await;
    // Including the body, its tools and the tool itself, the maximum nesting: 127 levels.
    let deep = (0..124).fold(json!(1), |inner, _| json!([inner]));
    let ours = json!({ "type": "ours", "deep": deep });
    let body = json!({ "model": "model-sol", "input": [{ "role": "user", "content": "Say apples" }, ours], "tools": [ours] });
    let made = server.ask(PATH, &body).await;
    assert_eq!(made["tools"][0], ours);
    let (status, retrieved) = read(server.get(&format!("{PATH}/{}", id(&made)))).await;
    assert_eq!((status, &retrieved), (200, &made));
    let items = page(&server, &made, "?order=asc").await;
    assert_eq!(items["data"][1]["deep"], ours["deep"]);
    let next = json!({ "model": "model-sol", "previous_response_id": made["id"], "input": "Say pears" });
    server.ask(PATH, &next).await;
}

#[tokio::test]
async fn response_repeating_too_much_of_its_request_is_rejected() {
    let server = start().await;
    for stream in [false, true] {
        let ours = json!({ "type": "ours", "numbers": vec![0; 100_000] });
        let body = json!({ "model": "model-sol", "input": "Say apples", "tools": [ours], "stream": stream });
        let (status, answer) = server.refused(PATH, &body).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("request_too_costly")), "{answer}");
    }
}

#[tokio::test]
async fn invalid_query_parameters_are_rejected() {
    let server = start().await;
    let (first, _) = two_turns(&server).await;
    for (query, param) in [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=-1", "limit"),
        ("limit=ten", "limit"),
        ("limit=", "limit"),
        ("order=up", "order"),
        ("after=msg_unknown", "after"),
        ("before=msg_unknown", "before"),
    ] {
        let (status, body) = read(server.get(&format!("{PATH}/{}/input_items?{query}", id(&first)))).await;
        assert_eq!((status, &body["error"]["param"]), (400, &json!(param)), "{query}: {body}");
    }
    let (status, body) = read(server.get(&format!("{PATH}/{}?stream=true", id(&first)))).await;
    assert_eq!((status, &body["error"]["param"]), (400, &json!("stream")), "{body}");
}

#[tokio::test]
async fn typed_client_retrieves_lists_and_deletes_responses() {
    let server = start().await;
    let client = gatewright::Client::builder().base_url(&server.url).api_key(KEY).build().expect("a client");
    let responses = client.responses();
    let request = types::ResponseRequest::new("model-sol", "Say apples");
    let made = responses.create(&request).await.expect("a response");
    let retrieved = responses.retrieve(&made.id).await.expect("it is stored");
    assert_eq!(retrieved.output_text(), "apples");
    let order = Some(types::ListResponseInputItemsOrder::Asc);
    let page = responses.input_items().list(&made.id, None, None, Some(1), order).await.expect("a page");
    let [item] = page.data.as_slice() else { panic!("{page:?}") };
    assert_eq!((item.type_.as_str(), page.has_more), ("message", false));
    assert!(responses.delete(&made.id).await.expect("it is there").deleted);
    let error = responses.retrieve(&made.id).await.expect_err("it is gone");
    assert_eq!((error.status(), error.param()), (Some(404), Some("response_id")));
}

/// A gateway whose model `mine` is at these upstreams, with translation of responses.
async fn translating(upstreams: &[(&str, Kind, &str)]) -> Server {
    let upstreams = upstreams.iter().map(|(name, kind, url)| upstream(name, *kind, url)).collect();
    let mut settings: Config = config(upstreams);
    settings.models[0].translate_responses = true;
    start_with(settings).await
}

#[tokio::test]
async fn response_of_a_storeless_provider_is_stored_and_continued() {
    let provider = Scripted::start([
        json_answer(200, &completion("apples")),
        json_answer(200, &completion("pears")),
        stream(&chunks(&["pl", "ums"])),
        json_answer(200, &completion("figs")),
    ])
    .await;
    let server = translating(&[("chat", Kind::Chat, &provider.url)]).await;
    let first = server.ask(PATH, &json!({ "model": "mine", "input": "Say apples" })).await;
    assert_eq!(read(server.get(&format!("{PATH}/{}", id(&first)))).await, (200, first.clone()));
    let input = json!([{ "role": "user", "content": "Say pears" }]);
    let second = json!({ "model": "mine", "previous_response_id": first["id"], "input": input });
    let second = server.ask(PATH, &second).await;
    assert_eq!(second["previous_response_id"], first["id"]);
    let all = page(&server, &second, "?order=asc").await;
    assert_eq!(texts(&all), ["Say apples", "apples", "Say pears"]);

    let third = json!({
        "model": "mine", "previous_response_id": second["id"], "input": "Say plums", "stream": true,
    });
    let events = server.stream(PATH, &third).await;
    let last = events.iter().find(|event| event.name.as_deref() == Some("response.completed"));
    let third = last.expect("the last event").json()["response"].clone();
    assert_eq!(read(server.get(&format!("{PATH}/{}", id(&third)))).await, (200, third.clone()));

    let fourth = json!({ "model": "mine", "previous_response_id": third["id"], "input": "Say figs" });
    server.ask(PATH, &fourth).await;
    let seen = provider.seen();
    let messages_of = |at: usize| -> Vec<(String, String)> {
        let request = seen[at].json();
        let text = |value: &Value| match value {
            Value::Array(parts) => parts[0]["text"].as_str().unwrap_or_default().to_owned(),
            value => value.as_str().unwrap_or_default().to_owned(),
        };
        let messages = request["messages"].as_array().expect("messages").iter();
        messages.map(|message| (text(&message["role"]), text(&message["content"]))).collect()
    };
    let turns = [
        ("user", "Say apples"),
        ("assistant", "apples"),
        ("user", "Say pears"),
        ("assistant", "pears"),
        ("user", "Say plums"),
        ("assistant", "plums"),
        ("user", "Say figs"),
    ];
    let turns = turns.map(|(role, text)| (role.to_owned(), text.to_owned()));
    for at in 0..4 {
        assert_eq!(messages_of(at), turns[..=2 * at], "request {at}");
        assert!(!seen[at].body.contains("previous_response_id"), "{}", seen[at].body);
    }

    let (status, _) = delete(&server, id(&third)).await;
    assert_eq!(status, 200);
    let (status, refused) = server.refused(PATH, &fourth).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("previous_response_not_found")));
    assert_eq!(provider.count(), 4);
}

#[tokio::test]
async fn store_false_response_is_never_kept() {
    let provider =
        Scripted::start([json_answer(200, &completion("apples")), stream(&chunks(&["apples"]))]).await;
    let server = translating(&[("chat", Kind::Chat, &provider.url)]).await;
    let mut body = json!({ "model": "mine", "input": "Say apples", "store": false });
    let whole = server.ask(PATH, &body).await;
    body["stream"] = json!(true);
    let events = server.stream(PATH, &body).await;
    let streamed = events[0].json()["response"].clone();
    for response in [&whole, &streamed] {
        assert_eq!(read(server.get(&format!("{PATH}/{}", id(response)))).await.0, 404);
        let next = json!({ "model": "mine", "input": "x", "previous_response_id": response["id"] });
        assert_eq!(server.refused(PATH, &next).await.0, 400);
    }
}

#[tokio::test]
async fn broken_stream_stores_no_response() {
    let half = chunks(&["app", "les"]);
    let provider = Scripted::start([stream(&half[..half.len() / 2])]).await;
    let server = translating(&[("chat", Kind::Chat, &provider.url)]).await;
    let events = server.stream(PATH, &json!({ "model": "mine", "input": "a", "stream": true })).await;
    assert_eq!(events.last().and_then(|event| event.name.as_deref()), Some("response.failed"));
    let response = events[0].json()["response"].clone();
    assert_eq!(read(server.get(&format!("{PATH}/{}", id(&response)))).await.0, 404);
}

#[tokio::test]
async fn another_provider_gets_the_whole_stored_conversation() {
    let chat = Scripted::start([json_answer(200, &completion("apples")), json_answer(500, &json!({}))]).await;
    let answer = json!({ "id": "resp_theirs", "object": "response", "status": "completed", "model": "theirs",
        "output": [] });
    let responses = Scripted::start([json_answer(200, &answer)]).await;
    let server =
        translating(&[("chat", Kind::Chat, &chat.url), ("responses", Kind::Responses, &responses.url)]).await;
    let first = server.ask(PATH, &json!({ "model": "mine", "input": "Say apples" })).await;
    let mut next = json!({ "model": "mine", "previous_response_id": first["id"], "input": "Say pears" });
    server.ask(PATH, &next).await;
    let seen = responses.seen()[0].json();
    assert_eq!(
        texts(&json!({ "data": seen["input"].as_array().expect("items")[..2] })),
        ["Say apples", "apples"]
    );
    assert_eq!((&seen["input"][2]["content"], &seen["model"]), (&json!("Say pears"), &json!("theirs")));
    assert!(seen["previous_response_id"].is_null());
    // The new response is stored and continued there.
    next["previous_response_id"] = json!("resp_theirs");
    server.ask(PATH, &next).await;
    assert_eq!(responses.seen()[1].body, next.to_string().replace("mine", "theirs"));
}

#[tokio::test]
async fn dropped_pointers_of_a_continued_request_are_its_own() {
    let provider = Scripted::start([json_answer(200, &completion("apples"))]).await;
    let server = translating(&[("chat", Kind::Chat, &provider.url)]).await;
    let first = server.ask(PATH, &json!({ "model": "mine", "input": "Say apples" })).await;
    let input = json!([{ "role": "user", "content": "a" }, { "type": "ours", "text": "b" }]);
    let next = json!({ "model": "mine", "previous_response_id": first["id"], "input": input });
    let response = send(server.post(PATH, &next)).await;
    assert_eq!(response.headers()["x-gatewright-dropped"], "/input/1");
}

#[tokio::test]
async fn dropped_item_leaves_no_empty_message() {
    let provider = Scripted::start([json_answer(200, &completion("apples"))]).await;
    let server = translating(&[("chat", Kind::Chat, &provider.url)]).await;
    let search = json!({ "type": "web_search_call", "id": "ws_1", "status": "completed",
        "action": { "type": "search", "query": "apples" } });
    let input = json!([{ "role": "user", "content": "a" }, search, { "role": "user", "content": "b" }]);
    let response = send(server.post(PATH, &json!({ "model": "mine", "input": input }))).await;
    assert_eq!(response.headers()["x-gatewright-dropped"], "/input/1");
    let sent = provider.seen()[0].json();
    let contents: Vec<&Value> =
        sent["messages"].as_array().expect("messages").iter().map(|one| &one["content"]).collect();
    assert_eq!(contents, [&json!("a"), &json!("b")]);
}
