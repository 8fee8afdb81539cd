//! Faults on demand affect responses of the simulator only.

use gatewright_gateway::{ApiKey, Config, FAULT_HEADER, Kind, ModelConfig, TargetConfig, UpstreamConfig};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Server, read, start, start_with};
use crate::upstreams::{Scripted, completion, json_answer, question, upstream};

const CHAT: &str = "/v1/chat/completions";
const ADMIN: &str = "gw-admin-canary-77";

/// A gateway with models of a provider (`mine`, `my~model`, and `hop`, whose upstream name contains a fault for the next
/// gateway), of the simulator (`sim`, `sim~two`), and of both (`both`).
async fn start_mixed(provider: &Scripted) -> Server {
    let target = |upstream: &str, model: &str| TargetConfig::new(upstream, model);
    let model = |id: &str, target: TargetConfig| ModelConfig::new(id, "family_one", target);
    let mut both = model("both", target("embedded", "model-sol"));
    both.targets.push(target("one", "theirs"));
    let mut sim = model("sim", target("embedded", "model-sol"));
    sim.aliases = vec!["simulated".to_owned()];
    let models = vec![
        model("mine", target("one", "theirs")),
        model("my~model", target("one", "theirs")),
        model("hop", target("one", "theirs~status=503")),
        sim,
        model("sim~two", target("embedded", "model-sol")),
        both,
    ];
    let upstreams = vec![
        upstream("one", Kind::Chat, &provider.url),
        UpstreamConfig::new("embedded", Kind::Simulator, ""),
    ];
    let admin_key = Some(ApiKey::new(ADMIN).expect("a valid key"));
    start_with(Config { upstreams, models, admin_key, ..Config::default() }).await
}

async fn provider() -> Scripted {
    Scripted::start([json_answer(200, &completion("well"))]).await
}

fn body_for(model: &str) -> Value {
    let mut body = question(false);
    body["model"] = model.into();
    body
}

#[tokio::test]
async fn faults_cannot_be_injected_into_provider_responses() {
    let provider = provider().await;
    let server = start_mixed(&provider).await;
    for fault in ["status=503", "wrong_model=zzz", "nothing-known"] {
        for model in ["mine", "my~model", "both"] {
            let (status, body) = read(server.post(CHAT, &body_for(model)).header(FAULT_HEADER, fault)).await;
            let error = &body["error"];
            assert_eq!((status, &error["param"]), (400, &json!(FAULT_HEADER)), "{model} {fault}: {body}");
            assert!(error["message"].as_str().is_some_and(|message| message.contains("simulator")), "{body}");
            let (status, body) = read(server.post(CHAT, &body_for(&format!("{model}~{fault}")))).await;
            assert_eq!((status, &body["error"]["param"]), (400, &json!("model")), "{model} {fault}: {body}");
        }
    }
    let native = json!({"contents": [{"parts": [{"text": "hi"}]}]});
    let path = "/v1beta/models/models/mine~status=503:generateContent";
    let (status, body) = server.refused(path, &native).await;
    assert_eq!((status, &body["error"]["status"]), (400, &json!("INVALID_ARGUMENT")), "{body}");
    assert_eq!(provider.count(), 0);
}

#[tokio::test]
async fn simulated_models_fail_while_providers_do_not() {
    let provider = provider().await;
    let server = start_mixed(&provider).await;
    for model in ["sim", "simulated", "sim~two"] {
        let request = server.post(CHAT, &body_for(model)).header(FAULT_HEADER, "status=503");
        assert_eq!(read(request).await.0, 503, "{model}");
        let named = server.ask(CHAT, &body_for(&format!("{model}~wrong_model=x~y"))).await;
        assert_eq!(named["model"], "x~y", "{model}");
        let (status, body) = read(server.post(CHAT, &body_for(&format!("{model}~explode")))).await;
        assert_eq!((status, &body["error"]["param"]), (400, &json!("model")), "{body}");
    }
    // The last of duplicate members counts, as it does for the operation.
    let twice =
        r#"{"model": "mine", "messages": [{"role": "user", "content": "~"}], "model" : "sim~wrong_model=z"}"#;
    let request = server.post(CHAT, &json!({})).body(twice);
    let (status, body) = read(request.header("content-type", "application/json")).await;
    assert_eq!((status, &body["model"]), (200, &json!("z")), "{body}");
    let native = json!({"contents": [{"parts": [{"text": "hi"}]}]});
    let path = "/v1beta/models/models/sim~status=503:generateContent";
    assert_eq!(server.refused(path, &native).await.0, 503);
    assert_eq!(provider.count(), 0);
}

#[tokio::test]
async fn model_id_with_a_tilde_is_served_verbatim() {
    let provider = provider().await;
    let server = start_mixed(&provider).await;
    let answer = server.ask(CHAT, &body_for("my~model")).await;
    assert_eq!(answer["model"], "my~model");
    assert_eq!(server.ask(CHAT, &body_for("sim~two")).await["model"], "sim~two");
    assert_eq!(read(server.get("/v1/models/my~model")).await.1["id"], "my~model");
    // The next gateway applies the faults in the model name that it gets.
    server.ask(CHAT, &body_for("hop")).await;
    let models: Vec<Value> = provider.seen().iter().map(|seen| seen.json()["model"].clone()).collect();
    assert_eq!(models, [json!("theirs"), json!("theirs~status=503")]);
}

#[tokio::test]
async fn request_without_a_model_may_fail_only_in_a_pure_simulator() {
    let server = start().await;
    assert_eq!(read(server.get("/v1/models").header(FAULT_HEADER, "status=503")).await.0, 503);
    let provider = provider().await;
    let server = start_mixed(&provider).await;
    let (status, body) = read(server.get("/v1/models").header(FAULT_HEADER, "status=503")).await;
    assert_eq!((status, &body["error"]["param"]), (400, &json!(FAULT_HEADER)), "{body}");
    // No such model exists, and that is the error returned.
    let (status, body) = read(server.post(CHAT, &body_for("nope~status=503"))).await;
    assert_eq!((status, &body["error"]["code"]), (404, &json!("model_not_found")), "{body}");
    let (status, _) = read(server.post(CHAT, &body_for("nope")).header(FAULT_HEADER, "status=503")).await;
    assert_eq!(status, 404);
    let (status, _) = read(server.post(CHAT, &json!({})).header(FAULT_HEADER, "status=503")).await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn scoped_key_gets_403_for_every_other_model() {
    let provider = provider().await;
    let server = start_mixed(&provider).await;
    let new = json!({ "name": "narrow", "scopes": { "models": ["sim"] } });
    let made = server.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(&new);
    let key = read(made).await.1["secret"].as_str().expect("a secret").to_owned();
    let status = async |model: &str| {
        let request = server.bare(Method::POST, CHAT).bearer_auth(&key).json(&body_for(model));
        read(request.header(FAULT_HEADER, "status=503")).await.0
    };
    assert_eq!(status("sim").await, 503);
    for model in ["mine", "mine~html", "sim~two", "nope", "nope~html"] {
        assert_eq!(status(model).await, 403, "{model}");
    }
}
