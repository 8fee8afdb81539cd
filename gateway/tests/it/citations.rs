//! Citations and other provider-specific members of an answer, in another protocol.

use gatewright_gateway::Kind;
use serde_json::{Value, json};

use crate::support::{Event, Server, start_with};
use crate::upstreams::{Scripted, config, json_answer, question, stream, upstream};

const CHAT: &str = "/v1/chat/completions";
const SAFETY: &str = "/candidates/0/safetyRatings";

/// A candidate whose first six characters (eight bytes) cite a page.
fn candidate(parts: &Value) -> Value {
    json!({"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP",
        "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}],
        "groundingMetadata": {
            "groundingChunks": [{"web": {"uri": "https://a.example/b", "title": "Berries"}}],
            "groundingSupports": [{"segment": {"endIndex": 8, "text": "Blåbær"}, "groundingChunkIndices": [0]}]}})
}

fn response(candidate: &Value) -> Value {
    json!({"candidates": [candidate], "modelVersion": "theirs", "responseId": "r1",
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}})
}

async fn at_native(steps: Vec<crate::upstreams::Step>) -> (Server, Scripted) {
    let scripted = Scripted::start([steps]).await;
    let mut settings = config(vec![upstream("one", Kind::Native, &scripted.url)]);
    settings.models[0].translate_responses = true;
    (start_with(settings).await, scripted)
}

#[tokio::test]
async fn citations_reach_clients_of_each_protocol() {
    let answer = response(&candidate(&json!([{"text": "Blåbær are blue."}])));
    let (server, _upstream) = at_native(json_answer(200, &answer)).await;

    let got = server.ask(CHAT, &question(false)).await;
    let annotation = &got["choices"][0]["message"]["annotations"][0];
    let citation =
        json!({"start_index": 0, "end_index": 6, "url": "https://a.example/b", "title": "Berries"});
    assert_eq!(
        (&annotation["type"], &annotation["url_citation"]),
        (&json!("url_citation"), &citation),
        "{got}"
    );
    assert_eq!(got["provider_extra"][SAFETY][0]["probability"], "NEGLIGIBLE", "{got}");

    let got = server.ask("/v1/responses", &json!({"model": "mine", "input": "hi"})).await;
    let annotation = &got["output"][0]["content"][0]["annotations"][0];
    assert_eq!((&annotation["url"], &annotation["end_index"]), (&citation["url"], &json!(6)), "{got}");

    let body = json!({"model": "mine", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
    let got = server.ask("/v1/messages", &body).await;
    let blocks = got["content"].as_array().expect("blocks");
    let texts: Vec<&Value> = blocks.iter().map(|block| &block["text"]).collect();
    assert_eq!(texts, ["Blåbær", " are blue."], "{got}");
    assert_eq!(blocks[0]["citations"][0]["url"], "https://a.example/b");
    assert!(blocks[1]["citations"].is_null() && got["provider_extra"][SAFETY].is_array(), "{got}");
}

#[tokio::test]
async fn streamed_citations_reach_clients_of_each_protocol() {
    let piece = json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": "Blå"}]}}],
        "modelVersion": "theirs", "responseId": "r1"});
    let last = response(&candidate(&json!([{"text": "bær are blue."}])));
    let events = format!("data: {piece}\n\ndata: {last}\n\n");
    let (server, _upstream) = at_native(stream(&events)).await;

    let got = server.stream(CHAT, &question(true)).await;
    let chunks: Vec<Value> = got[..got.len() - 1].iter().map(Event::json).collect();
    let mut deltas =
        chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]["annotations"][0]["url_citation"]);
    let cited = deltas.find(|citation| citation.is_object()).expect("a citation");
    assert_eq!((&cited["start_index"], &cited["end_index"]), (&json!(0), &json!(6)));
    let last = chunks.iter().find(|chunk| chunk["provider_extra"].is_object()).expect("the rest");
    assert_eq!(
        (&last["choices"][0]["finish_reason"], last["provider_extra"][SAFETY].is_array()),
        (&json!("stop"), true)
    );

    let body = json!({"model": "mine", "input": "hi", "stream": true});
    let got = server.stream("/v1/responses", &body).await;
    let named = |name: &str| {
        let event = got.iter().find(|event| event.name.as_deref() == Some(name));
        event.unwrap_or_else(|| panic!("{name}: {got:?}")).json()
    };
    let added = named("response.output_text.annotation.added");
    assert_eq!(added["annotation"]["url"], "https://a.example/b", "{added}");
    let whole = named("response.completed");
    assert_eq!(whole["response"]["output"][0]["content"][0]["annotations"][0], added["annotation"]);
    assert!(whole["response"]["provider_extra"][SAFETY].is_array(), "{whole}");

    let mut body = json!({"model": "mine", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
    body["stream"] = json!(true);
    let got: Vec<Value> = server.stream("/v1/messages", &body).await.iter().map(Event::json).collect();
    let cited = got.iter().find(|event| event["delta"]["type"] == "citations_delta").expect("a citation");
    assert_eq!(cited["delta"]["citation"]["title"], "Berries", "{got:?}");
    let ended = got.iter().find(|event| event["type"] == "message_delta").expect("an end");
    assert!(ended["provider_extra"][SAFETY].is_array(), "{ended}");
}
