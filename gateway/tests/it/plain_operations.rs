//! Rankings and moderations: by the simulator, and by providers that are as strict as real ones and answer as sloppily.

use gatewright_gateway::{
    ApiKey, Config, Kind, ModelConfig, ModelKind, ModelPrice, TargetConfig, UpstreamConfig,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{KEY, read, send, start, start_with};
use crate::upstream_images::usage_row;
use crate::upstreams::{self, Scripted, Seen, Step, UPSTREAM_KEY, answer, json_answer, upstream};

const RERANK: &str = "/v1/rerank";
const MODERATIONS: &str = "/v1/moderations";
const ADMIN: &str = "gw-admin-canary-91";

/// A gateway with a model `mine`, called `theirs` at these upstreams.
fn config(kind: ModelKind, upstreams: Vec<UpstreamConfig>) -> Config {
    let mut config = upstreams::config(upstreams);
    config.models[0].kind = kind;
    config.models[0].limits = None;
    config
}

fn ranked(documents: &Value) -> Value {
    json!({ "model": "mine", "query": "a boat", "documents": documents })
}

fn judged(input: &Value) -> Value {
    json!({ "model": "mine", "input": input })
}

/// Answers whose form is preserved only by passing them through.
const RANKING: &str = "{ \"id\":\"r\",\"results\" : [{\"index\":0,\"relevance_score\":1.50e-1,\"future\":1e0}],\
                       \"model\":\"theirs\",\"meta\":{\"billed_units\":{\"search_units\":1}},\
                       \"usage\":{\"prompt_tokens\":7,\"total_tokens\":7}}";
const VERDICTS: &str = "{ \"id\":\"m\",\"model\":\"theirs\",\"results\" : [{\"flagged\":false,\
                        \"categories\":{\"hate\":false},\"category_scores\":{\"hate\":1.50e-1},\"future\":1e0}]}";

fn passing(text: &str) -> Vec<Step> {
    vec![Step::Write(answer(200, "application/json", text))]
}

/// The two operations: the kind of their models, a request with one input, and an answer.
fn both() -> [(&'static str, ModelKind, Value, &'static str); 2] {
    [
        (RERANK, ModelKind::Rerank, ranked(&json!(["a"])), RANKING),
        (MODERATIONS, ModelKind::Moderation, judged(&json!("a")), VERDICTS),
    ]
}

fn error(status: u16, message: &str) -> Vec<Step> {
    json_answer(
        status,
        &json!({ "error": { "message": message, "type": "invalid_request_error", "code": "x" } }),
    )
}

/// A server of rankings that ignores `top_n` and `return_documents`, keeps the order of the documents, and counts nothing.
fn ranking_provider(seen: &Seen) -> Vec<Step> {
    let body = seen.json();
    let known = ["model", "query", "documents", "top_n", "return_documents", "max_tokens_per_doc"];
    let unknown = body.as_object().expect("an object").keys().find(|name| !known.contains(&name.as_str()));
    if let Some(name) = unknown {
        return error(400, &format!("Argument '{name}' is not supported"));
    }
    if seen.path() != RERANK || body["model"] != "theirs" {
        return error(404, "no such model");
    }
    let documents = body["documents"].as_array().expect("a list").iter().enumerate();
    let score = |document: &Value| document.as_str().or(document["text"].as_str()).expect("a text").len();
    let data: Vec<Value> = documents
        .map(|(index, document)| json!({ "index": index, "score": score(document), "document": null }))
        .collect();
    json_answer(200, &json!({ "object": "list", "data": data }))
}

#[tokio::test]
async fn simulator_ranks_and_moderates_deterministically() {
    let server = start().await;
    let body = json!({
        "model": "rerank_model_1",
        "query": "Which boats sail on a lake?",
        "documents": ["Interest rates of banks", { "text": "Boats on the lake", "id": 7 }, "a lake"],
        "top_n": 2,
        "return_documents": true,
    });
    let first = server.ask(RERANK, &body).await;
    let results = first["results"].as_array().expect("a list");
    let order: Vec<&Value> = results.iter().map(|result| &result["index"]).collect();
    assert_eq!(order, [&json!(1), &json!(2)], "{first}");
    assert_eq!(results[0]["document"], json!({ "text": "Boats on the lake" }));
    assert!(first["id"].as_str().is_some_and(|id| id.starts_with("rerank-")), "{first}");
    assert!(first["usage"]["total_tokens"].as_u64() > Some(10), "{first}");
    assert_eq!(server.ask(RERANK, &body).await["results"], first["results"]);
    let body = json!({ "model": "moderation_model_1", "input": ["A boat", "I will punch you"] });
    let judged = server.ask(MODERATIONS, &body).await;
    assert_eq!(
        (&judged["results"][0]["flagged"], &judged["results"][1]["flagged"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(judged["results"][1]["categories"]["violence"], true);
    // Without a model, the gateway chooses.
    for body in
        [json!({ "input": "I will punch you" }), json!({ "model": null, "input": "I will punch you" })]
    {
        let chosen = server.ask(MODERATIONS, &body).await;
        assert_eq!(
            (&chosen["model"], &chosen["results"][0]),
            (&json!("moderation_model_1"), &judged["results"][1])
        );
    }
    let (status, refused) = server.refused(RERANK, &json!({ "query": "a", "documents": ["a"] })).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("model")), "{refused}");
}

#[tokio::test]
async fn requests_are_relayed_with_only_the_model_renamed() {
    for (path, model, request, answered) in both() {
        for (kind, at) in [(Kind::Chat, path.to_owned()), (Kind::Gatewright, format!("/v1{path}"))] {
            let provider = Scripted::start([passing(answered)]).await;
            let server = start_with(config(model, vec![upstream("one", kind, &provider.url)])).await;
            let body = request.to_string().replacen('{', "{ \"future\" : 1e0, ", 1);
            let sent =
                server.bare(Method::POST, path).bearer_auth(KEY).header("content-type", "application/json");
            let response = send(sent.body(body.clone())).await;
            assert_eq!(response.headers()["x-gatewright-upstream"], "one");
            assert!(!response.headers().contains_key("x-gatewright-estimated"));
            assert_eq!(response.text().await.expect("a body"), answered.replace("theirs", "mine"));
            let seen = &provider.seen()[0];
            assert_eq!((seen.path(), seen.body.as_str()), (&*at, &*body.replace("mine", "theirs")));
            assert_eq!(seen.header("authorization"), Some(&*format!("Bearer {UPSTREAM_KEY}")));
        }
    }
}

#[tokio::test]
async fn sloppy_rankings_are_completed() {
    let provider = Scripted::answering(ranking_provider).await;
    let server =
        start_with(config(ModelKind::Rerank, vec![upstream("one", Kind::Chat, &provider.url)])).await;
    let mut body = ranked(&json!(["aa", { "text": "aaaa" }, "aaa"]));
    (body["top_n"], body["return_documents"]) = (json!(2), json!(true));
    let response = send(server.post(RERANK, &body)).await;
    assert_eq!(response.headers()["x-gatewright-estimated"], "true");
    let answer: Value = response.json().await.expect("JSON");
    assert_eq!(
        answer["results"],
        json!([
            { "index": 1, "relevance_score": 4, "document": { "text": "aaaa" } },
            { "index": 2, "relevance_score": 3, "document": { "text": "aaa" } },
        ])
    );
    assert_eq!((&answer["model"], answer.get("data")), (&json!("mine"), None));
    assert!(answer["usage"]["total_tokens"].as_u64() > Some(0), "{answer}");
    body["future"] = json!(1);
    let (status, refused) = server.refused(RERANK, &body).await;
    assert_eq!(status, 400, "{refused}");
}

#[tokio::test]
async fn model_of_a_moderation_is_chosen_among_those_that_the_key_may_use() {
    let provider = Scripted::start([passing(VERDICTS)]).await;
    let mut config = config(ModelKind::Moderation, vec![upstream("one", Kind::Chat, &provider.url)]);
    config.models.insert(0, ModelConfig::new("words", "family_one", TargetConfig::new("one", "words")));
    let server = start_with(config).await;
    let answer = server.ask(MODERATIONS, &json!({ "input": "a" })).await;
    assert_eq!(answer["model"], "mine");
    assert_eq!(provider.seen()[0].json(), json!({ "input": "a", "model": "theirs" }));
    let text_only = Scripted::start([passing(VERDICTS)]).await;
    let server = start_with(upstreams::config(vec![upstream("one", Kind::Chat, &text_only.url)])).await;
    let (status, refused) = server.refused(MODERATIONS, &json!({ "input": "a" })).await;
    assert_eq!((status, &refused["error"]["code"]), (404, &json!("model_not_found")), "{refused}");
    assert_eq!(text_only.count(), 0);
}

#[tokio::test]
async fn bounds_are_checked_before_any_upstream_is_called() {
    let provider = Scripted::start([passing(RANKING)]).await;
    let one = || vec![upstream("one", Kind::Chat, &provider.url)];
    let ranks = start_with(config(ModelKind::Rerank, one())).await;
    let judges = start_with(config(ModelKind::Moderation, one())).await;
    let with = |mut body: Value, name: &str, value: Value| {
        body[name] = value;
        body
    };
    let (ranking, moderation) = (ranked(&json!(["a"])), judged(&json!("a")));
    for (server, path, body, param) in [
        (&ranks, RERANK, with(ranking.clone(), "documents", json!([])), "documents"),
        (&ranks, RERANK, with(ranking.clone(), "documents", json!(vec!["a"; 1001])), "documents"),
        (&ranks, RERANK, with(ranking.clone(), "documents", json!("a")), "documents"),
        (&ranks, RERANK, with(ranking.clone(), "query", json!("")), "query"),
        (&ranks, RERANK, with(ranking.clone(), "top_n", json!(0)), "top_n"),
        (&ranks, RERANK, with(ranking.clone(), "top_n", json!(-1)), "top_n"),
        (&ranks, RERANK, with(ranking, "stream", json!(true)), "stream"),
        (&judges, MODERATIONS, with(moderation.clone(), "input", json!([])), "input"),
        (&judges, MODERATIONS, with(moderation.clone(), "input", json!(vec!["a"; 1001])), "input"),
        (&judges, MODERATIONS, with(moderation.clone(), "input", Value::Null), "input"),
        (&judges, MODERATIONS, with(moderation.clone(), "model", json!("")), "model"),
        (&judges, MODERATIONS, with(moderation, "stream", json!(true)), "stream"),
    ] {
        let (status, refused) = server.refused(path, &body).await;
        assert_eq!((status, &refused["error"]["param"]), (400, &json!(param)), "{refused}");
    }
    assert_eq!(provider.count(), 0);
}

#[tokio::test]
async fn upstream_with_a_useless_answer_is_skipped() {
    let page = vec![Step::Write(answer(200, "text/html", "<html>hello</html>"))];
    let cut = Step::Write(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"results\":[".to_vec());
    let results = |results: Value| json_answer(200, &json!({ "results": results }));
    let general = || {
        vec![
            error(500, "no"),
            error(429, "no"),
            error(401, "no"),
            results(json!([])),
            results(Value::Null),
            page.clone(),
            vec![cut.clone(), Step::Close],
            vec![Step::Reset],
        ]
    };
    let broken = |text: &str| passing(&format!("{{\"results\":[{text}]}}"));
    let rankings = [
        broken(r#"{"index":1,"relevance_score":1}"#),
        broken(r#"{"index":0}"#),
        broken(r#"{"index":0,"relevance_score":NaN}"#),
        broken(r#"{"index":0,"relevance_score":1e999}"#),
    ];
    let verdicts = [broken("{}"), broken(r#"{"flagged":true,"category_scores":{"hate":"high"}}"#)];
    for (path, model, request, answered) in both() {
        let own = if model == ModelKind::Rerank { rankings.to_vec() } else { verdicts.to_vec() };
        for failing in general().into_iter().chain(own) {
            let (bad, good) = (Scripted::start([failing]).await, Scripted::start([passing(answered)]).await);
            let both = vec![upstream("bad", Kind::Chat, &bad.url), upstream("good", Kind::Chat, &good.url)];
            let server = start_with(config(model, both)).await;
            let response = send(server.post(path, &request)).await;
            assert_eq!(response.headers()["x-gatewright-upstream"], "good");
            assert_eq!((bad.count(), good.count()), (1, 1));
        }
    }
}

#[tokio::test]
async fn request_error_of_a_provider_is_relayed_without_the_key() {
    for (path, model, request, _) in both() {
        let provider = Scripted::start([error(400, &format!("too long for {UPSTREAM_KEY}"))]).await;
        let both =
            vec![upstream("one", Kind::Chat, &provider.url), upstream("two", Kind::Chat, &provider.url)];
        let server = start_with(config(model, both)).await;
        let (status, refused) = server.refused(path, &request).await;
        assert_eq!((status, provider.count()), (400, 1), "a request error is returned without failover");
        assert!(!refused.to_string().contains("canary"), "{refused}");
    }
}

#[tokio::test]
async fn only_input_tokens_are_counted_and_priced() {
    for (path, model, request, answered) in both() {
        let provider = Scripted::start([passing(answered)]).await;
        let mut config = config(model, vec![upstream("one", Kind::Chat, &provider.url)]);
        config.admin_key = Some(ApiKey::new(ADMIN).expect("a key"));
        config.models[0].targets[0].price = Some(ModelPrice::new(1000.0, 1_000_000.0));
        let server = start_with(config).await;
        server.ask(path, &request).await;
        let row = usage_row(&server, ADMIN).await;
        let numbers = ["requests", "output_tokens"].map(|name| row[name].as_u64());
        assert_eq!(numbers, [1, 0].map(Some), "{row}");
        // A moderation has no usage, which is estimated.
        let is_estimated = u64::from(model == ModelKind::Moderation);
        let tokens = row["input_tokens"].as_u64().expect("a count");
        assert_eq!((row["estimated"].as_u64(), tokens), (Some(is_estimated), 7), "{row}");
        let cost = row["cost"].as_f64().expect("a cost");
        assert!((cost - f64::from(u32::try_from(tokens).expect("few")) / 1000.0).abs() < 1e-9, "{row}");
    }
}

#[tokio::test]
async fn model_of_another_kind_is_404_with_its_kind_and_endpoint() {
    let provider = Scripted::start([passing(RANKING)]).await;
    let mut config = config(ModelKind::Rerank, vec![upstream("one", Kind::Responses, &provider.url)]);
    config.models.push(ModelConfig::new("words", "family_one", TargetConfig::new("one", "words")));
    let mut judge = ModelConfig::new("judge", "gateway", TargetConfig::new("one", "judge"));
    judge.kind = ModelKind::Moderation;
    config.models.push(judge);
    let server = start_with(config).await;
    for (path, model, expected) in [
        (
            "/v1/chat/completions",
            "mine",
            "is a rerank model, which POST /v1/chat/completions does not serve; use POST /v1/rerank",
        ),
        (
            "/v1/embeddings",
            "judge",
            "is a moderation model, which POST /v1/embeddings does not serve; use POST /v1/moderations",
        ),
        (
            RERANK,
            "words",
            "is a text model, which POST /v1/rerank does not serve; use POST /v1/chat/completions",
        ),
        (
            MODERATIONS,
            "mine",
            "is a rerank model, which POST /v1/moderations does not serve; use POST /v1/rerank",
        ),
    ] {
        let body = json!({
            "model": model, "query": "x", "documents": ["x"], "input": "x", "messages": [{ "role": "user", "content": "x" }],
        });
        let (status, refused) = server.refused(path, &body).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert_eq!((status, &refused["error"]["code"]), (404, &json!("model_not_found")), "{refused}");
        assert!(message.ends_with(expected), "{message}");
    }
    let (_, list) = read(server.get("/v1/models")).await;
    let shown = |at: usize| (list["data"][at]["kind"].clone(), list["data"][at]["protocols"].clone());
    assert_eq!(shown(0), (json!("rerank"), json!(["rerank"])));
    assert_eq!(shown(2), (json!("moderation"), json!(["moderations"])));
}

#[tokio::test]
async fn plain_operations_pass_through_two_gateways() {
    let inner = start().await;
    for (path, model, theirs, mut body) in [
        (RERANK, ModelKind::Rerank, "rerank_model_1", ranked(&json!(["a boat", "a lake"]))),
        (MODERATIONS, ModelKind::Moderation, "moderation_model_1", judged(&json!(["a boat", "punch"]))),
    ] {
        let mut next = UpstreamConfig::new("inner", Kind::Gatewright, inner.url.clone());
        next.keys = vec![ApiKey::new(KEY).expect("a key")];
        let mut config = config(model, vec![next]);
        config.models[0].targets[0].model = theirs.to_owned();
        let server = start_with(config).await;
        let passed = server.ask(path, &body).await;
        body["model"] = theirs.into();
        let direct = inner.ask(path, &body).await;
        assert_eq!((&direct["results"], &direct["usage"]), (&passed["results"], &passed["usage"]));
        assert_eq!(passed["model"], "mine");
    }
}
