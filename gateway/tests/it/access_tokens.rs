//! Upstreams with access tokens from a token server.

use std::time::Duration;

use gatewright_gateway::{ClientCredentials, KeySource, Kind};
use serde_json::{Value, json};

use crate::support::{Server, start_with, until};
use crate::upstreams::{Scripted, Seen, Step, completion, config, json_answer, question, upstream};

const CHAT: &str = "/v1/chat/completions";

fn token(key: &str, seconds: u64) -> Vec<Step> {
    json_answer(200, &json!({ "access_token": key, "expires_in": seconds, "token_type": "Bearer" }))
}

/// A gateway whose upstream uses tokens of this server.
async fn in_front_of(provider: &Scripted, token_url: &str) -> Server {
    let client = ClientCredentials::new(token_url, "gateway", "client-canary");
    let mut one = upstream("one", Kind::Chat, &provider.url);
    one.keys.clear();
    one.key_source = Some(KeySource::ClientCredentials(client));
    start_with(config(vec![one])).await
}

/// Rejects a revoked token.
fn without_first(seen: &Seen) -> Vec<Step> {
    if seen.header("authorization") == Some("Bearer token-1") {
        return json_answer(
            401,
            &json!({ "error": { "message": "token-1 was revoked", "code": "invalid" } }),
        );
    }
    json_answer(200, &completion("hello"))
}

#[tokio::test]
async fn request_with_a_rejected_token_is_retried_once_with_a_new_one() {
    let provider = Scripted::answering(without_first).await;
    // The minimum pause between two tokens is a twentieth of the lifetime.
    let tokens = Scripted::start([token("token-1", 10), token("token-2", 3600)]).await;
    let server = in_front_of(&provider, &tokens.url).await;
    until(|| tokens.count() == 1).await;
    tokio::time::sleep(Duration::from_millis(550)).await;
    server.ask(CHAT, &question(false)).await;
    let seen = provider.seen();
    let sent = seen.iter().map(|request| request.header("authorization"));
    assert_eq!(sent.collect::<Vec<_>>(), [Some("Bearer token-1"), Some("Bearer token-2")]);
    assert_eq!(seen[0].body, seen[1].body);
    assert_eq!(tokens.count(), 2);
}

#[tokio::test]
async fn missing_token_error_hides_the_token_server() {
    let provider = Scripted::start([json_answer(200, &completion("hello"))]).await;
    let refusal: Value = json!({ "error": "invalid_client", "error_description": "client-canary is wrong" });
    let tokens = Scripted::start([json_answer(401, &refusal)]).await;
    let server = in_front_of(&provider, &tokens.url).await;
    let (status, answer) = server.refused(CHAT, &question(false)).await;
    assert!(status >= 500, "{answer}");
    let answer = answer.to_string();
    assert!(answer.contains("the token server returned no access token"), "{answer}");
    assert!(!answer.contains("127.0.0.1") && !answer.contains("canary"), "{answer}");
    assert_eq!(provider.count(), 0);
}
