//! Requests relayed to an upstream of the same protocol, and the responses.

use gatewright_gateway::{Kind, ModelConfig, TargetConfig};
use serde_json::{Value, json};

use crate::support::{KEY, Server, read, send, start_with};
use crate::upstreams::{
    STREAM_HEAD, Scripted, Step, UPSTREAM_KEY, answer, chunks, completion, config, json_answer, question,
    stream, upstream,
};

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn chat_request_and_response_are_relayed() {
    let upstream_server = Scripted::start([json_answer(200, &completion("hello"))]).await;
    let mut one = upstream("one", Kind::Chat, &upstream_server.url);
    one.headers.push("x-team".to_owned());
    let server = start_with(config(vec![one])).await;
    let request = server
        .post(CHAT, &question(false))
        .header("x-team", "blue")
        .header("x-other", "no")
        .header("cookie", "a=b");
    let response = send(request).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["x-gatewright-upstream"], "one");
    assert_eq!(response.headers()["content-type"], "application/json");
    let text = response.text().await.expect("a body");
    // Identical to the upstream's response, except for the model name.
    assert_eq!(text, completion("hello").to_string().replace("theirs", "mine"));

    let seen = upstream_server.seen().swap_remove(0);
    assert_eq!(seen.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(seen.header("authorization"), Some(format!("Bearer {UPSTREAM_KEY}").as_str()));
    assert_eq!(
        (seen.header("x-team"), seen.header("x-other"), seen.header("cookie")),
        (Some("blue"), None, None)
    );
    assert!(seen.header("x-request-id").is_some_and(|id| id.starts_with("req_")), "{:?}", seen.headers);
    assert_eq!(
        seen.json(),
        json!({"model": "theirs", "messages": question(false)["messages"], "stream": false})
    );
}

#[tokio::test]
async fn unknown_chat_members_items_and_events_pass_verbatim() {
    let event =
        "event: future\nid: 9\ndata: {\"type\":\"x.future\", \"n\":1.50,\"deep\":{\"a\":[{}]}}\nretry: 5\n\n";
    let own = format!(
        "data: {{\"model\" : \"theirs\", \"choices\":[{{\"delta\":{{\"future\":[1e1]}},\"finish_reason\":\"odd\"}}]}}\n\n{event}: comment\n\ndata: [DONE]\n\n"
    );
    let scripted = Scripted::start([stream(&own)]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    let body = r#"{"model":"mine","future":{"a":1.50,"b":[]},"stream":true,
        "messages":[{"role":"user","content":[{"type":"text","text":"hi","x":1}],"y":1e0}]}"#;
    let request = server
        .bare(reqwest::Method::POST, CHAT)
        .bearer_auth(KEY)
        .header("content-type", "application/json")
        .body(body);
    let response = send(request).await;
    assert_eq!(response.status(), 200, "{:?}", response.text().await);
    assert_eq!(response.text().await.expect("a stream"), own.replace("theirs", "mine"));
    let sent = body.replace("\"mine\"", "\"theirs\"");
    let sent = sent.strip_suffix('}').expect("an object").to_owned();
    assert_eq!(scripted.seen()[0].body, sent + r#","stream_options":{"include_usage":true}}"#);
}

/// A gateway with the model `mine` at an upstream of this kind.
async fn in_front_of(kind: Kind, scripted: &Scripted) -> Server {
    start_with(config(vec![upstream("one", kind, &scripted.url)])).await
}

/// Posts a text and returns the response verbatim.
async fn post(server: &Server, path: &str, body: &'static str) -> String {
    let request = server.bare(reqwest::Method::POST, path).bearer_auth(KEY);
    let response = send(request.header("content-type", "application/json").body(body)).await;
    let status = response.status();
    let text = response.text().await.expect("a body");
    assert_eq!(status, 200, "{text}");
    text
}

/// A unary response with this body.
fn document(text: &str) -> Vec<Step> {
    vec![Step::Write(answer(200, "application/json", text))]
}

#[tokio::test]
async fn unknown_responses_members_items_and_events_pass_verbatim() {
    let body = r#"{ "model":"mine", "future":{"a":1.50,"b":[]},"store":false,"stream":true,
        "input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi","x":1e0}],"y":[ ]},
        {"type":"future_item","z":{"deep":[{}]}}]}"#;
    let own = r#": a comment

event: response.created
data: {"type" : "response.created","sequence_number":0,"response":{"id":"resp_1","future":1e1, "model" :"theirs","output":[]}}

event: response.future.delta
id: 9
data: {"type":"response.future.delta", "sequence_number":1,"n":1.50,"deep":{"a":[{}]},"model":"left alone"}
retry: 5

data: {"a_type":"none"}

event: future
data: no JSON at all

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":0,"item":{"type":"future_item","x":[ 1e0 ]}}

event: response.completed
data: {"type":"response.completed","response":{"model":"theirs","status":"completed","usage":{"input_tokens":3,"output_tokens":2,"future":1}}, "x":1.0}

"#;
    let whole = r#"{"id":"resp_1", "object":"response","model" : "theirs","status":"completed", "future":{"a":[1.50]},
        "output":[{"type":"future_item","x":1e0},{"type":"message","content":[{"type":"future_part"}]}],
        "usage":{"input_tokens":3,"output_tokens":2,"future":{}}}"#;
    let scripted = Scripted::start([stream(own), document(whole)]).await;
    let server = in_front_of(Kind::Responses, &scripted).await;
    assert_eq!(post(&server, "/v1/responses", body).await, own.replace("theirs", "mine"));
    let unary_body = r#"{"model":"mine","store":false,"future":[1.50], "input":"hi"}"#;
    assert_eq!(post(&server, "/v1/responses", unary_body).await, whole.replace("theirs", "mine"));
    let sent: Vec<String> = scripted.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(sent, [body, unary_body].map(|body| body.replace("\"mine\"", "\"theirs\"")));
}

#[tokio::test]
async fn unknown_messages_members_blocks_and_events_pass_verbatim() {
    let body = r#"{ "model":"mine","max_tokens":9, "future":{"a":1.50,"b":[]},"stream":true,
        "messages":[{"role":"user","content":[{"type":"text","text":"hi","x":1e0},{"type":"future_block","z":[{}]}],"y":[ ]}]}"#;
    let own = r#": a comment

event: message_start
data: {"type" : "message_start","message":{"id":"msg_1","future":1e1, "model" :"theirs","content":[],"usage":{"input_tokens":3,"future":1}}}

event: ping
data: {"type": "ping"}

event: future_event
id: 9
data: {"type":"future_event", "n":1.50,"deep":{"a":[{}]},"model":"left alone"}
retry: 5

event: future
data: no JSON at all

event: content_block_start
data: {"type":"content_block_start","index":0, "content_block":{"type":"future_block","x":[ 1e0 ]}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"future_delta","x":1.0}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"future_reason"},"usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop", "future":1.50}

"#;
    let whole = r#"{"id":"msg_1", "type":"message","role":"assistant","model" : "theirs", "future":{"a":[1.50]},
        "content":[{"type":"future_block","x":1e0},{"type":"text","text":"hi","y":[ ]}],
        "stop_reason":"future_reason","usage":{"input_tokens":3,"output_tokens":2,"future":{}}}"#;
    let scripted = Scripted::start([stream(own), document(whole)]).await;
    let server = in_front_of(Kind::Messages, &scripted).await;
    assert_eq!(post(&server, "/v1/messages", body).await, own.replace("theirs", "mine"));
    let unary_body = r#"{"model":"mine","max_tokens":9,"future":[1.50],
        "messages":[{"role":"user","content":"hi","x":1e0}]}"#;
    assert_eq!(post(&server, "/v1/messages", unary_body).await, whole.replace("theirs", "mine"));
    let sent: Vec<String> = scripted.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(sent, [body, unary_body].map(|body| body.replace("\"mine\"", "\"theirs\"")));
}

#[tokio::test]
async fn unknown_native_members_parts_and_documents_pass_verbatim() {
    let body = r#"{ "future":{"a":1.50,"b":[]}, "contents":[{"role":"user","y":[ ],
        "parts":[{"text":"hi","x":1e0},{"futurePart":{"z":[{}]}}]}],"generationConfig":{"futureOption":1.0}}"#;
    let documents = [
        r#"{"candidates" : [{"index":0,"content":{"role":"model","parts":[{"text":"h","x":1.50},{"futurePart":[ 1e0 ]}]}}], "modelVersion" :"theirs"}"#,
        r#"{"futureDocument":{"a":[{}], "n":1e1},"model":"left alone"}"#,
        r#"{"modelVersion":"theirs", "candidates":[{"index":0,"finishReason":"FUTURE_REASON"}],"usageMetadata":{"promptTokenCount":3,"future":1.0}}"#,
    ];
    let own = format!(
        ": a comment\n\ndata: {}\n\nevent: future\nid: 9\ndata: {}\nretry: 5\n\ndata: {}\n\n",
        documents[0], documents[1], documents[2]
    );
    let whole = documents[0].replace("\"index\":0", "\"index\":0, \"finishReason\":\"STOP\"");
    let scripted = Scripted::start([document(&whole), stream(&own)]).await;
    let server = in_front_of(Kind::Native, &scripted).await;
    let path = |method: &str| format!("/v1beta/models/mine:{method}");
    assert_eq!(post(&server, &path("generateContent"), body).await, whole.replace("theirs", "mine"));
    let events = post(&server, &path("streamGenerateContent?alt=sse"), body).await;
    assert_eq!(events, own.replace("theirs", "mine"));
    // Each document becomes an element; an array has no place for comments and event names.
    let array = post(&server, &path("streamGenerateContent"), body).await;
    assert_eq!(array, format!("[{}]", documents.join(",\r\n")).replace("theirs", "mine"));
    let sent: Vec<String> = scripted.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(sent, [body; 3]);
}

#[tokio::test]
async fn chat_stream_usage_is_sent_only_on_request() {
    let events = chunks(&["hel", "lo"]);
    let scripted = Scripted::start([stream(&events)]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    let got = server.stream(CHAT, &question(true)).await;
    assert_eq!(got.len(), 4);
    assert!(got.iter().all(|event| !event.data.contains("prompt_tokens")));
    assert!(got[..3].iter().all(|event| event.json()["model"] == "mine"));
    assert_eq!(got[3].data, "[DONE]");
    let mut body = question(true);
    body["stream_options"] = json!({"include_usage": true});
    let got = server.stream(CHAT, &body).await;
    assert_eq!(got.len(), 5);
    assert_eq!(got[3].json()["usage"]["total_tokens"], 5);
}

#[tokio::test]
async fn responses_and_native_requests_are_relayed() {
    let response = json!({"id": "resp_1", "object": "response", "model": "theirs", "status": "completed",
        "output": [{"type": "future", "x": 1}], "usage": {"input_tokens": 3, "output_tokens": 2}});
    let created = json!({"type": "response.created", "sequence_number": 0, "response": response});
    let completed = json!({"type": "response.completed", "sequence_number": 1, "response": response});
    let events = format!(
        "event: response.created\ndata: {created}\n\nevent: response.completed\ndata: {completed}\n\n"
    );
    let one = Scripted::start([json_answer(200, &response), stream(&events)]).await;
    let mut settings = config(vec![upstream("one", Kind::Responses, &one.url)]);
    let document = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "hi", "x": 1}]},
        "finishReason": "STOP", "index": 0}], "modelVersion": "theirs", "usageMetadata": {"promptTokenCount": 3}});
    let event = format!("data: {document}\n\n");
    let two = Scripted::start([json_answer(200, &document), stream(&event)]).await;
    settings.upstreams.push(upstream("two", Kind::Native, &two.url));
    settings.models.push(ModelConfig::new("native", "family_three", TargetConfig::new("two", "a/b")));
    let server = start_with(settings).await;

    let answer = server.ask("/v1/responses", &json!({"model": "mine", "input": "hi"})).await;
    assert_eq!((&answer["model"], &answer["output"]), (&json!("mine"), &response["output"]));
    let got = server.stream("/v1/responses", &json!({"model": "mine", "input": "hi", "stream": true})).await;
    assert_eq!(got[1].name.as_deref(), Some("response.completed"));
    assert_eq!(got[1].json()["response"]["model"], "mine");
    assert_eq!(one.seen()[0].line, "POST /v1/responses HTTP/1.1");

    let body = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    let answer = server.ask("/v1beta/models/native:generateContent", &body).await;
    assert_eq!((&answer["modelVersion"], &answer["candidates"]), (&json!("native"), &document["candidates"]));
    let got = server.stream("/v1beta/models/native:streamGenerateContent?alt=sse", &body).await;
    assert_eq!(got.len(), 1);
    let array = server.ask("/v1beta/models/native:streamGenerateContent", &body).await;
    assert_eq!(array[0]["modelVersion"], "native");
    let lines: Vec<String> = two.seen().into_iter().map(|seen| seen.line).collect();
    assert_eq!(lines[0], "POST /v1/models/a%2Fb:generateContent HTTP/1.1");
    assert_eq!(lines[2], "POST /v1/models/a%2Fb:streamGenerateContent?alt=sse HTTP/1.1");
    assert_eq!(two.seen()[0].header("x-goog-api-key"), Some(UPSTREAM_KEY));
}

#[tokio::test]
async fn requests_are_validated_but_not_against_the_catalog() {
    let scripted = Scripted::start([json_answer(200, &completion("hello"))]).await;
    let mut settings = config(vec![upstream("one", Kind::Chat, &scripted.url)]);
    // The catalog has a video model of this name.
    settings.models[0].id = "video_model_1".to_owned();
    settings.models[0].aliases.push("mine".to_owned());
    let server = start_with(settings).await;
    let mut body = question(false);
    body["temperature"] = json!(9);
    let (status, answer) = server.refused(CHAT, &body).await;
    assert_eq!((status, &answer["error"]["param"]), (400, &json!("temperature")), "{answer}");
    assert_eq!(scripted.count(), 0);
    let mut body = question(false);
    body["model"] = json!("video_model_1");
    assert_eq!(server.ask(CHAT, &body).await["model"], "video_model_1");
    // As long as allowed, and read on a separate thread.
    body["messages"][0]["content"] = "x".repeat(1_000_000).into();
    assert_eq!(server.ask(CHAT, &body).await["model"], "video_model_1");
    let (status, answer) =
        server.refused(CHAT, &json!({"model": "nobody's", "messages": body["messages"]})).await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("model_not_found")));
    // Not a model of this configuration.
    let (status, _) =
        server.refused(CHAT, &json!({"model": "model-sol", "messages": body["messages"]})).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn model_lists_contain_the_configured_models() {
    let scripted = Scripted::start([]).await;
    let mut settings = config(vec![upstream("one", Kind::Chat, &scripted.url)]);
    settings.models[0].aliases.push("short".to_owned());
    let server = start_with(settings).await;
    let (_, list) = read(server.get("/v1/models")).await;
    let ids: Vec<&Value> =
        list["data"].as_array().expect("models").iter().map(|model| &model["id"]).collect();
    assert!(ids.contains(&&json!("mine")) && !ids.contains(&&json!("model-sol")), "{ids:?}");
    let (status, model) = read(server.get("/v1/models/short")).await;
    assert_eq!((status, &model["id"], &model["owned_by"]), (200, &json!("mine"), &json!("family_one")));
    let (_, native) = read(server.get("/v1beta/models")).await;
    assert_eq!(native["models"][0]["name"], "models/mine");
}

#[tokio::test]
async fn upstream_errors_are_returned_in_the_clients_form() {
    let upstream_error = |status: u16, code: &str| {
        json_answer(
            status,
            &json!({"error": {"message": format!("no, {UPSTREAM_KEY} may not"), "type": "invalid_request_error",
                "param": "messages", "code": code}}),
        )
    };
    let scripted = Scripted::start([]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    for (status, code, expected) in [
        (400, "context_length_exceeded", 400),
        (401, "invalid_api_key", 502),
        (403, "permission_denied", 403),
        (404, "model_not_found", 404),
        (422, "odd", 422),
        (500, "server_error", 500),
        (503, "overloaded", 503),
        (302, "moved", 502),
    ] {
        scripted.then(upstream_error(status, code));
        let (got, answer) = server.refused(CHAT, &question(false)).await;
        assert_eq!(got, expected, "{status}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        let expected = match status {
            401 => "the provider rejected the gateway's key",
            _ => "no, [redacted] may not",
        };
        assert!(message.contains(expected), "{answer}");
        if status == 400 {
            assert_eq!(answer["error"]["code"], "context_length_exceeded");
            assert_eq!(answer["error"]["param"], "messages");
        }
    }
}

#[tokio::test]
async fn retry_after_is_forwarded_and_rests_the_key() {
    let head = "HTTP/1.1 429 X\r\nretry-after-ms: 2500\r\ncontent-length: 2\r\n\r\n{}";
    let scripted = Scripted::start([vec![Step::Write(head.into())]]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    for _ in 0..2 {
        let response = send(server.post(CHAT, &question(false))).await;
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["retry-after"], "3");
        let body: Value = response.json().await.expect("JSON");
        assert_eq!(body["error"]["code"], "rate_limit_exceeded");
    }
    assert_eq!(scripted.count(), 1);
}

#[tokio::test]
async fn stream_without_a_final_blank_line_is_complete() {
    let events = chunks(&["x"]);
    let scripted = Scripted::start([stream(events.trim_end())]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    let got = server.stream(CHAT, &question(true)).await;
    assert_eq!(got.last().map(|event| event.data.as_str()), Some("[DONE]"));
}

#[tokio::test]
async fn events_are_forwarded_as_they_arrive() {
    let events = chunks(&["a", "b"]);
    let first = events.split_inclusive("\n\n").next().expect("an event");
    // The upstream waits forever after its first event.
    let steps = vec![Step::Write(format!("{STREAM_HEAD}{first}").into()), Step::Hang];
    let scripted = Scripted::start([steps]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    let mut response = send(server.post(CHAT, &question(true))).await;
    let got = response.chunk().await.expect("a stream").expect("an event");
    assert_eq!(got, first.replace("theirs", "mine"));
}

#[tokio::test]
async fn connection_is_reused_for_many_requests() {
    let body = completion("x").to_string();
    let scripted = Scripted::start([vec![Step::Write(answer(200, "application/json", &body))]]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    for _ in 0..20 {
        server.ask(CHAT, &question(false)).await;
    }
    assert_eq!(scripted.count(), 20);
}
