//! Requests whose upstream speaks another protocol than the client: each client protocol with each kind of upstream.

use gatewright_gateway::{Config, ConfigFile, Kind, ModelConfig, TargetConfig, Thinking};
use serde_json::{Value, json};

use crate::callers::Protocol;
use crate::fault_matrix;
use crate::support::{Event, KEY, Server, read, send, start, start_with};
use crate::upstreams::{Scripted, config, json_answer, question, stream, upstream};

const TOKEN: &str = "COMPAT-4c1d9e";
const CHAT: &str = "/v1/chat/completions";

/// A gateway with one model per kind of upstream; the upstream is another gateway with the simulator.
async fn hops() -> (Server, Server) {
    let behind = start().await;
    let url = &behind.url;
    let upstreams = [
        ("chat", Kind::Chat, format!("{url}/v1")),
        ("responses", Kind::Responses, format!("{url}/v1")),
        ("messages", Kind::Messages, format!("{url}/v1")),
        ("native", Kind::Native, format!("{url}/v1beta")),
        ("gatewright", Kind::Gatewright, url.clone()),
        ("simulator", Kind::Simulator, String::new()),
    ];
    let mut settings = Config { upstreams: Vec::new(), models: Vec::new(), ..Config::default() };
    for (name, kind, base) in upstreams {
        let mut upstream = upstream(name, kind, &base);
        upstream.keys = vec![gatewright_gateway::ApiKey::new(KEY).expect("a key")];
        settings.upstreams.push(upstream);
        let mut model =
            ModelConfig::new(format!("at-{name}"), "family_one", TargetConfig::new(name, "model-sol"));
        model.translate_responses = true;
        settings.models.push(model);
    }
    (start_with(settings).await, behind)
}

const KINDS: [&str; 6] = ["chat", "responses", "messages", "native", "gatewright", "simulator"];

#[tokio::test]
async fn each_client_protocol_reaches_each_kind_of_upstream() {
    let (server, _behind) = hops().await;
    let prompt = format!("Say {TOKEN}");
    for kind in KINDS {
        let model = format!("at-{kind}");
        let answer = server
            .ask(CHAT, &json!({"model": model, "messages": [{"role": "user", "content": prompt}]}))
            .await;
        assert_eq!(answer["choices"][0]["message"]["content"], TOKEN, "{kind}: {answer}");
        assert_eq!(
            (&answer["model"], &answer["choices"][0]["finish_reason"]),
            (&json!(model), &json!("stop"))
        );
        assert!(
            answer["usage"]["prompt_tokens"].as_u64().is_some_and(|tokens| tokens > 0),
            "{kind}: {answer}"
        );

        let answer = server.ask("/v1/responses", &json!({"model": model, "input": prompt})).await;
        assert_eq!(answer["output"][0]["content"][0]["text"], TOKEN, "{kind}: {answer}");
        assert_eq!((&answer["model"], &answer["status"]), (&json!(model), &json!("completed")));

        let body =
            json!({"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": prompt}]});
        let answer = server.ask("/v1/messages", &body).await;
        assert_eq!(answer["content"][0]["text"], TOKEN, "{kind}: {answer}");
        assert_eq!((&answer["model"], &answer["stop_reason"]), (&json!(model), &json!("end_turn")));
        let body = json!({"model": model, "messages": [{"role": "user", "content": prompt}]});
        let counted = send(server.post("/v1/messages/count_tokens", &body)).await;
        // Tokens are estimated for an upstream that cannot count them.
        let is_estimated = counted.headers().get("x-gatewright-estimated").is_some();
        assert_eq!(is_estimated, !["messages", "gatewright", "simulator"].contains(&kind), "{kind}");
        let answer: Value = counted.json().await.expect("JSON");
        assert!(answer["input_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{kind}: {answer}");

        let body = json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}]});
        let answer = server.ask(&format!("/v1beta/models/{model}:countTokens"), &body).await;
        assert!(answer["totalTokens"].as_u64().is_some_and(|tokens| tokens > 0), "{kind}: {answer}");
        let answer = server.ask(&format!("/v1beta/models/{model}:generateContent"), &body).await;
        assert_eq!(answer["candidates"][0]["content"]["parts"][0]["text"], TOKEN, "{kind}: {answer}");
        assert_eq!(answer["candidates"][0]["finishReason"], "STOP");
    }
}

#[tokio::test]
async fn streams_reach_each_client_protocol_from_each_kind_of_upstream() {
    let (server, _behind) = hops().await;
    let prompt = format!("Say \"one two three four\" and {TOKEN}");
    for kind in KINDS {
        let model = format!("at-{kind}");
        let mut body =
            json!({"model": model, "messages": [{"role": "user", "content": prompt}], "stream": true});
        body["stream_options"] = json!({"include_usage": true});
        let got = server.stream(CHAT, &body).await;
        assert_eq!(got.last().map(|event| event.data.as_str()), Some("[DONE]"), "{kind}: {got:?}");
        let chunks: Vec<Value> = got[..got.len() - 1].iter().map(Event::json).collect();
        let texts: Vec<&str> =
            chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
        assert!(texts.len() > 3 && texts.concat().contains(TOKEN), "{kind}: {texts:?}");
        assert!(
            chunks.last().is_some_and(|chunk| chunk["usage"]["total_tokens"].is_u64()),
            "{kind}: {got:?}"
        );

        let got =
            server.stream("/v1/responses", &json!({"model": model, "input": prompt, "stream": true})).await;
        let last = got.iter().find(|event| event.name.as_deref() == Some("response.completed"));
        let last = last.unwrap_or_else(|| panic!("{kind}: {got:?}"));
        assert!(
            last.json()["response"]["output"][0]["content"][0]["text"]
                .as_str()
                .expect("text")
                .contains(TOKEN)
        );

        let body = json!({"model": model, "max_tokens": 100, "stream": true,
            "messages": [{"role": "user", "content": prompt}]});
        let got = server.stream("/v1/messages", &body).await;
        assert_eq!(
            got.last().and_then(|event| event.name.as_deref()),
            Some("message_stop"),
            "{kind}: {got:?}"
        );
        let text: String = got
            .iter()
            .filter_map(|event| event.json()["delta"]["text"].as_str().map(str::to_owned))
            .collect();
        assert!(text.contains(TOKEN), "{kind}: {text}");

        let body = json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}]});
        let path = format!("/v1beta/models/{model}:streamGenerateContent");
        let got = server.stream(&format!("{path}?alt=sse"), &body).await;
        assert_eq!(got.last().expect("an event").json()["candidates"][0]["finishReason"], "STOP", "{kind}");
        let array = server.ask(&path, &body).await;
        let texts: String = array
            .as_array()
            .expect("an array")
            .iter()
            .filter_map(|document| document["candidates"][0]["content"]["parts"][0]["text"].as_str())
            .collect();
        assert!(texts.contains(TOKEN), "{kind}: {array}");
    }
}

#[tokio::test]
async fn tools_are_called_through_each_kind_of_upstream() {
    let (server, _behind) = hops().await;
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    for kind in KINDS {
        let body = json!({
            "model": format!("at-{kind}"), "messages": [{"role": "user", "content": "weather in \"Oslo\"?"}],
            "tools": [{"type": "function", "function": {"name": "weather", "parameters": schema}}],
            "tool_choice": {"type": "function", "function": {"name": "weather"}},
        });
        let answer = server.ask(CHAT, &body).await;
        let choice = &answer["choices"][0];
        let call = &choice["message"]["tool_calls"][0];
        assert_eq!(
            (&choice["finish_reason"], &call["function"]["name"]),
            (&json!("tool_calls"), &json!("weather"))
        );
        let arguments: Value =
            serde_json::from_str(call["function"]["arguments"].as_str().expect("text")).expect("JSON");
        assert!(arguments["city"].is_string(), "{kind}: {answer}");
        // The tool result is sent back.
        let mut next = body.clone();
        let messages = next["messages"].as_array_mut().expect("messages");
        messages.push(choice["message"].clone());
        messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "sunny"}));
        next["tool_choice"] = "none".into();
        let answer = server.ask(CHAT, &next).await;
        assert_eq!(answer["choices"][0]["finish_reason"], "stop", "{kind}: {answer}");
    }
}

#[tokio::test]
async fn inexpressible_members_are_reported_or_rejected_if_strict() {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "theirs",
        "content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 3, "output_tokens": 2}});
    let scripted = Scripted::start([json_answer(200, &message)]).await;
    let server = start_with(config(vec![upstream("one", Kind::Messages, &scripted.url)])).await;
    let mut body = question(false);
    body["seed"] = json!(7);
    body["future"] = json!({"a": 1});
    let response = send(server.post(CHAT, &body)).await;
    let dropped = response.headers()["x-gatewright-dropped"].to_str().expect("ASCII").to_owned();
    assert!(dropped.contains("/seed") && dropped.contains("/future"), "{dropped}");
    let answer: Value = response.json().await.expect("JSON");
    assert_eq!(answer["choices"][0]["message"]["content"], "hello");
    let sent = scripted.seen().swap_remove(0);
    assert_eq!(sent.line, "POST /v1/messages HTTP/1.1");
    assert!(sent.header("x-api-key").is_some() && sent.header("anthropic-version").is_some());
    assert_eq!((&sent.json()["model"], &sent.json()["max_tokens"]), (&json!("theirs"), &json!(4096)));

    let (status, answer) = read(server.post(CHAT, &body).header("x-gatewright-strict", "true")).await;
    assert_eq!(status, 400);
    let message = answer["error"]["message"].as_str().expect("a message");
    assert!(message.contains("/seed") && message.contains("/future"), "{answer}");
    assert_eq!(scripted.count(), 1);
    // A request without losses is not rejected.
    let (status, _) = read(server.post(CHAT, &question(false)).header("x-gatewright-strict", "true")).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn simulator_lists_members_that_it_ignores_and_rejects_them_for_strict_clients() {
    let server = start().await;
    let dropped = async |path: &str, body: &Value| {
        let response = send(server.post(path, body)).await;
        let places =
            response.headers().get("x-gatewright-dropped").map(|places| places.to_str().expect("ASCII"));
        let places = places.map(str::to_owned);
        (response.status().as_u16(), places, response.text().await.expect("a body"))
    };
    let messages = json!([{ "role": "user", "content": "hi", "mood": "good" }]);
    let contents = json!([{ "parts": [{ "text": "hi" }] }]);
    let input = json!([{ "role": "user", "content": "hi" }]);
    let sol = "model-sol";
    for (path, mut body, expected) in [
        (CHAT, json!({ "model": sol, "messages": messages }), "/messages/0/mood, /future"),
        (
            "/v1/messages",
            json!({ "model": sol, "max_tokens": 9, "messages": messages }),
            "/messages/0/mood, /future",
        ),
        ("/v1/responses", json!({ "model": sol, "input": input }), "/future"),
        ("/v1beta/models/model-sol:generateContent", json!({ "contents": contents }), "/future"),
    ] {
        body["future"] = json!(1);
        let (status, places, answer) = dropped(path, &body).await;
        assert_eq!((status, places.as_deref()), (200, Some(expected)), "{path}: {answer}");
        if !path.contains("v1beta") {
            body["stream"] = json!(true);
            assert_eq!(dropped(path, &body).await.1.as_deref(), Some(expected), "{path}, as a stream");
        }
        let (status, refused) = read(server.post(path, &body).header("x-gatewright-strict", "true")).await;
        assert_eq!(status, 400, "{path}");
        assert!(
            refused["error"]["message"].as_str().is_some_and(|text| text.contains("/future")),
            "{refused}"
        );
    }
    // What it understands is not in the list, nor is an earlier response, whose items have other places.
    let first = server.ask("/v1/responses", &json!({ "model": sol, "input": input })).await;
    let next = json!({ "model": sol, "input": input, "previous_response_id": first["id"], "temperature": 1, "store": true });
    assert_eq!(dropped("/v1/responses", &next).await.1, None);
}

#[tokio::test]
async fn strict_model_rejects_losses_unless_the_request_overrides_it() {
    for speaks in Protocol::ALL {
        for client in Protocol::ALL.into_iter().filter(|client| speaks.spoken_for(*client) != *client) {
            let scripted = Scripted::answering(move |seen| {
                fault_matrix::well(Protocol::of(seen), seen.header("accept") == Some("text/event-stream"))
            })
            .await;
            let mut settings = config(vec![upstream("one", speaks.kind(), &scripted.url)]);
            (settings.models[0].strict, settings.models[0].translate_responses) = (true, true);
            let server = start_with(settings).await;
            for stream in [false, true] {
                let here = format!("{client:?} at {speaks:?}, stream: {stream}");
                let (path, plain) = client.request("mine", stream);
                let mut body = plain.clone();
                body["future"] = json!({"a": 1});
                let post = async |body: &Value, strict: Option<&str>| {
                    let request = server.post(&path, body);
                    send(match strict {
                        Some(strict) => request.header("x-gatewright-strict", strict),
                        None => request,
                    })
                    .await
                };
                let before = scripted.count();
                for strict in [None, Some("true")] {
                    let refused = post(&body, strict).await;
                    assert_eq!(refused.status(), 400, "{here}, header: {strict:?}");
                    let error: Value = refused.json().await.expect("JSON");
                    assert!(
                        client.is_error(&error) && error.to_string().contains("/future"),
                        "{here}: {error}"
                    );
                }
                assert_eq!(scripted.count(), before, "{here}: no upstream was called");
                let allowed = post(&body, Some("false")).await;
                let dropped = allowed.headers().get("x-gatewright-dropped").map(http::HeaderValue::as_bytes);
                assert_eq!((allowed.status().as_u16(), dropped), (200, Some(&b"/future"[..])), "{here}");
                // A request without losses is not rejected.
                assert_eq!(post(&plain, None).await.status(), 200, "{here}");
            }
        }
    }
}

/// Between two sides of the same protocol nothing is lost: unknown members are relayed.
#[tokio::test]
async fn strict_model_relays_verbatim_and_inherits_from_its_family() {
    for (family, model, refused) in
        [("true", "", true), ("true", "strict = false", false), ("false", "strict = true", true)]
    {
        for client in [Protocol::Chat, Protocol::Messages] {
            let scripted = Scripted::start([json_answer(200, &Protocol::Chat.answer())]).await;
            let url = &scripted.url;
            let text = format!(
                "[families.ours]\nstrict = {family}\n[upstreams.one]\nkind = \"chat\"\nbase_url = \"{url}\"\n\
                 [models.mine]\nfamily = \"ours\"\n{model}\ntargets = [{{ upstream = \"one\" }}]\n"
            );
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join("gatewright.toml");
            std::fs::write(&file, text).expect("written");
            let read = ConfigFile::read(&file).unwrap_or_else(|problems| panic!("{problems}"));
            let server = start_with(read.config).await;
            let (path, mut body) = client.request("mine", false);
            body["future"] = json!({"a": 1});
            let status = send(server.post(&path, &body)).await.status().as_u16();
            let expected = if refused && client == Protocol::Messages { 400 } else { 200 };
            assert_eq!(status, expected, "{client:?}, family: {family}, model: {model}");
        }
    }
}

#[tokio::test]
async fn adaptive_model_gets_an_effort_instead_of_a_budget() {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "theirs",
        "content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 3, "output_tokens": 2}});
    let scripted = Scripted::start([json_answer(200, &message)]).await;
    let mut settings = config(vec![upstream("one", Kind::Messages, &scripted.url)]);
    settings.models[0].thinking = Thinking::Adaptive;
    let server = start_with(settings).await;
    let mut body = question(false);
    body["reasoning_effort"] = json!("medium");
    let response = send(server.post(CHAT, &body)).await;
    assert!(response.headers().get("x-gatewright-dropped").is_none(), "nothing is dropped");
    let sent = scripted.seen().swap_remove(0).json();
    assert_eq!(sent["thinking"], json!({"type": "adaptive", "display": "summarized"}), "{sent}");
    assert_eq!(sent["output_config"], json!({"effort": "medium"}), "{sent}");
}

#[tokio::test]
async fn broken_translated_stream_ends_with_the_clients_error_event() {
    let event = |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().expect("a type"));
    let started = event(json!({"type": "message_start", "message": {"id": "msg_1", "type": "message",
        "role": "assistant", "model": "theirs", "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 3, "output_tokens": 1}}}))
        + &event(
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        )
        + &event(
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hel"}}),
        );
    let failed = event(json!({"type": "error", "error": {"type": "overloaded_error", "message": "full"}}));
    for (events, code) in
        [(started.clone(), "upstream_error"), (started.clone() + &failed, "server_is_overloaded")]
    {
        let scripted = Scripted::start([stream(&events)]).await;
        let mut settings = config(vec![upstream("one", Kind::Messages, &scripted.url)]);
        settings.models[0].translate_responses = true;
        let server = start_with(settings).await;
        let got = server.stream(CHAT, &question(true)).await;
        let last = got.last().expect("an event").json();
        assert_eq!(last["error"]["code"], code, "{got:?}");
        assert!(got.iter().any(|event| event.data.contains("hel")));
        let body = json!({"model": "mine", "input": "hi", "stream": true});
        let got = server.stream("/v1/responses", &body).await;
        assert_eq!(got.last().and_then(|event| event.name.as_deref()), Some("response.failed"), "{got:?}");
    }
}

#[tokio::test]
async fn responses_are_translated_only_if_the_model_allows_it() {
    let scripted = Scripted::start([]).await;
    let settings = config(vec![upstream("one", Kind::Chat, &scripted.url)]);
    let server = start_with(settings).await;
    let (status, answer) = server.refused("/v1/responses", &json!({"model": "mine", "input": "hi"})).await;
    assert_eq!((status, &answer["error"]["param"]), (400, &json!("model")));
    assert!(answer["error"]["message"].as_str().expect("text").contains("/v1/chat/completions"), "{answer}");
    assert_eq!(scripted.count(), 0);
}
