//! Issued API keys: permissions, ownership and lifetime (ours; 5).

use std::path::Path;
use std::time::Duration;

use gatewright_gateway::{ApiKey, Config, Kind, NewKey, Registry, Rotation};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::{KEY, Server, files_of, read, send, start, start_with};
use crate::upstreams::{self, Scripted, completion, json_answer, question, upstream};

const ADMIN: &str = "gw-admin-canary-77";

fn config(folder: Option<&Path>) -> Config {
    let data = folder.map(Path::to_path_buf);
    Config { admin_key: Some(ApiKey::new(ADMIN).expect("a valid key")), data, ..Config::default() }
}

fn admin(server: &Server, method: Method, path: &str) -> RequestBuilder {
    server.bare(method, &format!("/admin{path}")).bearer_auth(ADMIN)
}

/// Creates a key and returns its secret and id.
async fn create(server: &Server, new: Value) -> (String, String) {
    let (status, issued) = read(admin(server, Method::POST, "/keys").json(&new)).await;
    assert_eq!(status, 201, "{issued}");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    (text(&issued["secret"]), text(&issued["key"]["id"]))
}

async fn chat(server: &Server, key: &str, model: &str) -> (u16, Value) {
    let body = json!({ "model": model, "messages": [{ "role": "user", "content": "Say hi" }] });
    read(server.bare(Method::POST, "/v1/chat/completions").bearer_auth(key).json(&body)).await
}

async fn lists(server: &Server, key: &str) -> u16 {
    read(server.bare(Method::GET, "/v1/models").bearer_auth(key)).await.0
}

#[tokio::test]
async fn key_works_until_it_is_revoked() {
    let server = start_with(config(None)).await;
    let (secret, id) = create(&server, json!({ "name": "ci" })).await;
    assert_eq!(chat(&server, &secret, "model-sol").await.0, 200);
    // It has a name and an id, but no secret.
    let (status, key) = read(admin(&server, Method::GET, "/keys/ci")).await;
    assert_eq!((status, key["id"].as_str()), (200, Some(id.as_str())));
    assert!(!key.to_string().contains(&secret));
    assert_eq!(read(admin(&server, Method::GET, &format!("/keys/{id}"))).await.1, key);
    let (_, list) = read(admin(&server, Method::GET, "/keys")).await;
    assert_eq!(list["keys"], json!([key]));

    let (status, revoked) = read(admin(&server, Method::DELETE, "/keys/ci")).await;
    assert_eq!((status, revoked["revoked"].is_u64()), (200, true));
    let (status, refused) = chat(&server, &secret, "model-sol").await;
    assert_eq!((status, &refused["error"]["code"]), (401, &json!("invalid_api_key")));
    assert_eq!(read(admin(&server, Method::DELETE, "/keys/ci")).await.0, 404);
    // The configured key is unaffected.
    assert_eq!(lists(&server, KEY).await, 200);
}

#[tokio::test]
async fn updated_key_keeps_its_secret_and_takes_effect_at_once() {
    let server = start_with(config(None)).await;
    let (secret, id) =
        create(&server, json!({ "name": "ci", "limits": { "tokens_per_day": 1_000_000 } })).await;
    create(&server, json!({ "name": "taken" })).await;
    let update = async |name: &str, body: Value| {
        read(admin(&server, Method::PATCH, &format!("/keys/{name}")).json(&body)).await
    };
    let (status, key) =
        update("ci", json!({ "name": "build", "scopes": { "models": ["model-terra"] } })).await;
    assert_eq!((status, &key["name"], &key["id"]), (200, &json!("build"), &json!(id)));
    // Members that the update doesn't have stay.
    assert_eq!(key["limits"]["tokens_per_day"], 1_000_000);
    assert_eq!(chat(&server, &secret, "model-sol").await.0, 403);
    assert_eq!(chat(&server, &secret, "model-terra").await.0, 200);

    // What it has used so far counts.
    let (status, _) = update("build", json!({ "scopes": {}, "limits": { "tokens_per_day": 1 } })).await;
    assert_eq!((status, chat(&server, &secret, "model-sol").await.0), (200, 429));
    let (_, key) = update(&id, json!({ "limits": null, "expires": 4_000_000_000_u64 })).await;
    assert_eq!((&key["limits"]["tokens_per_day"], &key["expires"]), (&json!(1), &json!(4_000_000_000_u64)));
    let (_, key) = update(&id, json!({ "limits": {}, "expires": 0 })).await;
    assert_eq!((&key["limits"]["tokens_per_day"], &key["expires"]), (&Value::Null, &Value::Null));
    assert_eq!(chat(&server, &secret, "model-sol").await.0, 200);

    for (body, param) in [
        (json!({ "name": "taken" }), "name"),
        (json!({ "name": " x" }), "name"),
        (json!({ "expires": 1 }), "expires"),
        (json!({ "scopes": { "operations": ["fly"] } }), "scopes.operations"),
        (json!({ "limits": { "requests_per_minute": 0 } }), "limits.requests_per_minute"),
    ] {
        let (status, refused) = update("build", body.clone()).await;
        assert_eq!((status, &refused["error"]["param"]), (400, &json!(param)), "{body}: {refused}");
    }
    assert_eq!(update("nobody", json!({})).await.0, 404);
    assert_eq!(read(admin(&server, Method::DELETE, "/keys/build")).await.0, 200);
    assert_eq!(update(&id, json!({ "expires": 0 })).await.0, 404);
}

#[tokio::test]
async fn expired_key_is_rejected_with_a_message() {
    let server = start_with(config(None)).await;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let (secret, _) = create(&server, json!({ "name": "brief", "expires": now.as_secs() + 2 })).await;
    assert_eq!(lists(&server, &secret).await, 200);
    until(&server, &secret, 401).await;
    let (status, refused) = chat(&server, &secret, "model-sol").await;
    let message = refused["error"]["message"].as_str().expect("a message");
    assert_eq!(status, 401);
    assert!(message.starts_with("Incorrect API key provided") && message.contains("expired"), "{message}");
}

#[tokio::test]
async fn rotated_key_keeps_its_id_and_its_old_secret_for_the_overlap() {
    let server = start_with(config(None)).await;
    let (first, id) = create(&server, json!({ "name": "ci" })).await;
    let rotate = async |body: Value| {
        let request = admin(&server, Method::POST, "/keys/ci/rotate");
        // An empty body means no overlap.
        let request = if body.is_null() { request } else { request.json(&body) };
        let (status, issued) = read(request).await;
        assert_eq!((status, &issued["key"]["id"]), (200, &json!(id)));
        issued["secret"].as_str().expect("a secret").to_owned()
    };
    let second = rotate(json!({})).await;
    assert_eq!((lists(&server, &first).await, lists(&server, &second).await), (401, 200));
    let third = rotate(json!({ "overlap_s": 2 })).await;
    assert_eq!((lists(&server, &second).await, lists(&server, &third).await), (200, 200));
    until(&server, &second, 401).await;
    assert_eq!((lists(&server, &second).await, lists(&server, &third).await), (401, 200));
    let fourth = rotate(Value::Null).await;
    assert_eq!((lists(&server, &third).await, lists(&server, &fourth).await), (401, 200));
    // A key has at most two secrets.
    let fifth = rotate(json!({ "overlap_s": 60 })).await;
    let sixth = rotate(json!({ "overlap_s": 60 })).await;
    for (secret, status) in [(&fourth, 401), (&fifth, 200), (&sixth, 200)] {
        assert_eq!(lists(&server, secret).await, status);
    }
}

#[tokio::test]
async fn id_of_a_key_takes_precedence_over_a_name() {
    let server = start_with(config(None)).await;
    let (_, id) = create(&server, json!({ "name": "first" })).await;
    create(&server, json!({ "name": id })).await;
    let (status, shown) = read(admin(&server, Method::GET, &format!("/keys/{id}"))).await;
    assert_eq!((status, &shown["name"]), (200, &json!("first")));
}

#[tokio::test]
async fn key_is_limited_to_its_operations_and_models() {
    let server = start_with(config(None)).await;
    let operations = json!(["create_chat_completion", "list_models", "retrieve_model", "generate_content"]);
    let scopes = json!({ "models": ["model-sol", "video_*"], "operations": operations });
    let (secret, _) = create(&server, json!({ "name": "narrow", "scopes": scopes })).await;
    assert_eq!(chat(&server, &secret, "model-sol").await.0, 200);
    let (status, refused) = chat(&server, &secret, "model-terra").await;
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("permission_denied")));
    assert_eq!(refused["error"]["param"], "model");
    // A model that does not exist is rejected in the same way.
    assert_eq!(chat(&server, &secret, "nope").await.0, 403);
    // With duplicate members, one could be checked and the other one used.
    let twice = r#"{"model":"model-sol","model":"model-terra","messages":[{"role":"user","content":"a"}]}"#;
    let request = server.bare(Method::POST, "/v1/chat/completions").bearer_auth(&secret);
    let request = request.header("content-type", "application/json").body(twice);
    assert_eq!(read(request).await.0, 400);
    // Providers call the models that tools name.
    let with_tool = |model: &str| {
        let tools = json!([{ "type": "function", "function": { "name": "f" } }, { "type": "image_generation", "model": model }]);
        let body =
            json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "a" }], "tools": tools });
        server.bare(Method::POST, "/v1/chat/completions").bearer_auth(&secret).json(&body)
    };
    let (status, refused) = read(with_tool("image_model_1")).await;
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("permission_denied")), "{refused}");
    assert_ne!(read(with_tool("video_model_1")).await.0, 403);

    let native = |model: &str| {
        let path = format!("/v1beta/models/{model}:generateContent");
        let body = json!({ "contents": [{ "parts": [{ "text": "hi" }] }] });
        server.bare(Method::POST, &path).header("x-goog-api-key", &secret).json(&body)
    };
    assert_eq!(read(native("gemini-terra")).await.0, 403);
    let responses = json!({ "model": "model-sol", "input": "hi" });
    let request = server.bare(Method::POST, "/v1/responses").bearer_auth(&secret).json(&responses);
    let (status, refused) = read(request).await;
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("permission_denied")));

    let (_, list) = read(server.bare(Method::GET, "/v1/models").bearer_auth(&secret)).await;
    let ids: Vec<&str> =
        list["data"].as_array().expect("models").iter().filter_map(|m| m["id"].as_str()).collect();
    assert!(ids.contains(&"model-sol") && ids.contains(&"video_model_1"), "{ids:?}");
    assert!(ids.iter().all(|id| *id == "model-sol" || id.starts_with("video_")), "{ids:?}");
    let one = |id: &str| server.bare(Method::GET, &format!("/v1/models/{id}")).bearer_auth(&secret);
    assert_eq!((read(one("model-sol")).await.0, read(one("image_model_1")).await.0), (200, 403));
}

#[tokio::test]
async fn model_lists_use_the_names_a_key_may_call() {
    let mut settings = config(None);
    let sol = settings.models.iter_mut().find(|model| model.id == "model-sol").expect("a model");
    sol.aliases = vec!["fast".to_owned(), "fast-2".to_owned(), "other".to_owned()];
    let server = start_with(settings).await;
    for (models, names) in [
        (json!(["fast"]), vec!["fast"]),
        (json!(["fast*"]), vec!["fast", "fast-2"]),
        // The id implies its aliases.
        (json!(["model-sol", "fast"]), vec!["model-sol"]),
        (json!(["nope"]), vec![]),
    ] {
        let new = json!({ "name": "narrow", "scopes": { "models": models } });
        let (secret, id) = create(&server, new).await;
        let get = async |path: &str| read(server.bare(Method::GET, path).bearer_auth(&secret)).await;
        let (_, list) = get("/v1/models").await;
        let ids: Vec<&str> =
            list["data"].as_array().expect("models").iter().filter_map(|m| m["id"].as_str()).collect();
        assert_eq!(ids, names);
        let (_, native) = get("/v1beta/models").await;
        let native: Vec<&str> = native["models"]
            .as_array()
            .expect("models")
            .iter()
            .filter_map(|m| m["baseModelId"].as_str())
            .collect();
        assert_eq!(native, names);
        for (name, entry) in names.iter().zip(list["data"].as_array().expect("models")) {
            assert_eq!(chat(&server, &secret, name).await.0, 200, "{name}");
            assert_eq!(get(&format!("/v1/models/{name}")).await, (200, entry.clone()));
            assert_eq!(get(&format!("/v1beta/models/{name}")).await.1["baseModelId"], *name);
        }
        if cfg!(feature = "console") {
            let (_, session) = get("/console/session").await;
            let models = session["models"].as_array().expect("models");
            assert_eq!(
                models.iter().map(|m| m["id"].as_str()).collect::<Vec<_>>(),
                names.iter().map(|name| Some(*name)).collect::<Vec<_>>()
            );
        }
        let (_, page) = get("/v1beta/models?pageSize=1").await;
        assert_eq!(page["nextPageToken"].as_str(), names.get(1).copied());
        assert_eq!(read(admin(&server, Method::DELETE, &format!("/keys/{id}"))).await.0, 200);
    }
}

#[tokio::test]
async fn upstream_header_is_sent_only_to_keys_with_show_upstream() {
    let one = Scripted::start([json_answer(200, &completion("well")), json_answer(500, &json!({}))]).await;
    let settings = upstreams::config(vec![upstream("one", Kind::Chat, &one.url)]);
    let server = start_with(Config { admin_key: config(None).admin_key, ..settings }).await;
    let (knows, _) = create(&server, json!({ "name": "knows", "scopes": { "show_upstream": true } })).await;
    let (other, id) = create(&server, json!({ "name": "other" })).await;
    let upstream_header = async |key: &str, status: u16| {
        let request = server.bare(Method::POST, "/v1/chat/completions").bearer_auth(key);
        let response = send(request.json(&question(false))).await;
        assert_eq!(response.status(), status);
        response.headers().get("x-gatewright-upstream").map(|name| name.to_str().expect("ASCII").to_owned())
    };
    one.then(json_answer(200, &completion("well")));
    assert_eq!(upstream_header(&other, 200).await, None);
    assert_eq!(upstream_header(&knows, 200).await.as_deref(), Some("one"));
    // The configured key belongs to the operator.
    assert_eq!(upstream_header(KEY, 200).await.as_deref(), Some("one"));
    one.then(json_answer(500, &json!({ "error": { "message": "broken" } })));
    assert_eq!(upstream_header(&other, 500).await, None);
    assert_eq!(upstream_header(&knows, 500).await.as_deref(), Some("one"));
    let (_, shown) = read(admin(&server, Method::GET, &format!("/keys/{id}"))).await;
    assert_eq!(shown["scopes"], json!({ "models": [], "operations": [] }));
}

#[tokio::test]
async fn messages_key_header_is_accepted() {
    let server = start().await;
    assert_eq!(read(server.bare(Method::GET, "/v1/models").header("x-api-key", KEY)).await.0, 200);
    assert_eq!(read(server.bare(Method::GET, "/v1/models").header("x-api-key", "wrong")).await.0, 401);
}

#[tokio::test]
async fn responses_videos_and_idempotency_keys_belong_to_one_key() {
    let server = start_with(config(None)).await;
    let (one, _) = create(&server, json!({ "name": "one" })).await;
    let (other, _) = create(&server, json!({ "name": "other" })).await;
    let post = |path: &str, key: &str, body: &Value| {
        server.bare(Method::POST, path).bearer_auth(key).header("idempotency-key", "same").json(body)
    };
    let get = |path: String, key: &str| server.bare(Method::GET, &path).bearer_auth(key);

    let body = json!({ "model": "model-sol", "input": "Say hi" });
    let (_, response) = read(post("/v1/responses", &one, &body)).await;
    let path = format!("/v1/responses/{}", response["id"].as_str().expect("an id"));
    assert_eq!(read(get(path.clone(), &one)).await.0, 200);
    assert_eq!(read(get(path.clone(), &other)).await.0, 404);
    assert_eq!(read(server.bare(Method::DELETE, &path).bearer_auth(&other)).await.0, 404);
    let next = json!({ "model": "model-sol", "input": "a", "previous_response_id": response["id"] });
    let (status, refused) =
        read(server.bare(Method::POST, "/v1/responses").bearer_auth(&other).json(&next)).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("previous_response_not_found")));
    // The same idempotency key under another API key gets its own response.
    let (_, second) = read(post("/v1/responses", &other, &body)).await;
    assert_ne!(response["id"], second["id"]);
    assert_eq!(read(post("/v1/responses", &one, &body)).await.1["id"], response["id"]);

    let video = json!({ "model": "video_model_1", "prompt": "a kite", "duration": 3 });
    let (_, task) = read(post("/v1/videos/generations", &one, &video)).await;
    let path = format!("/v1/videos/generations/{}", task["id"].as_str().expect("an id"));
    assert_eq!(read(get(path.clone(), &one)).await.0, 200);
    assert_eq!(read(get(path, &other)).await.0, 404);
}

#[tokio::test]
async fn key_changes_of_another_process_apply_within_a_second() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start_with(config(Some(folder.path()))).await;
    // Separate connections, like those of the program's commands.
    let registry = Registry::open(folder.path()).await.expect("a second process");
    let issued = registry.create(NewKey::new("outside")).await.expect("a key");
    let secret = issued.secret.expose().to_owned();
    until(&server, &secret, 200).await;
    let rotated = registry.rotate("outside", Rotation::default()).await.expect("a key");
    until(&server, &secret, 401).await;
    let secret = rotated.secret.expose().to_owned();
    until(&server, &secret, 200).await;
    registry.revoke("outside").await.expect("a key");
    until(&server, &secret, 401).await;
}

/// Waits until requests with a key get this status.
async fn until(server: &Server, secret: &str, expected: u16) {
    let started = std::time::Instant::now();
    while lists(server, secret).await != expected {
        assert!(started.elapsed() < Duration::from_secs(3), "{expected} took too long");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn keys_survive_a_restart_and_only_digests_are_stored() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start_with(config(Some(folder.path()))).await;
    let (secret, _) = create(&server, json!({ "name": "kept" })).await;
    let (_, again) =
        read(admin(&server, Method::POST, "/keys/kept/rotate").json(&json!({ "overlap_s": 60 }))).await;
    drop(server);
    let server = start_with(config(Some(folder.path()))).await;
    assert_eq!(lists(&server, &secret).await, 200);
    let rotated = again["secret"].as_str().expect("a secret");
    assert_eq!(lists(&server, rotated).await, 200);
    // No secret is in any file, with or without its prefix.
    let mut files = 0;
    for file in files_of(folder.path()) {
        let bytes = std::fs::read(&file).expect("a file");
        for secret in [secret.as_str(), rotated, KEY, ADMIN] {
            let inner = secret.trim_start_matches("gw-").as_bytes();
            assert!(!bytes.windows(inner.len()).any(|part| part == inner), "{file:?}");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;

            let mode = file.metadata().expect("metadata").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{file:?}");
        }
        files += 1;
    }
    assert!(files >= 2, "the database and the pepper");
}

#[tokio::test]
async fn mismatched_pepper_is_detected_at_startup() {
    let folder = tempfile::tempdir().expect("a folder");
    Registry::open(folder.path()).await.expect("a folder of data");
    std::fs::remove_file(folder.path().join("pepper")).expect("removed");
    let error = Registry::open(folder.path()).await.map(drop).expect_err("a new pepper");
    assert!(error.to_string().contains("restore both from the same backup"), "{error}");
    let config = Config { listen: vec!["127.0.0.1:0".to_owned()], ..config(Some(folder.path())) };
    let error = gatewright_gateway::Gateway::bind(config).await.map(drop).expect_err("a new pepper");
    assert!(error.to_string().contains("pepper"), "{error}");
}

#[tokio::test]
async fn admin_api_requires_a_configured_admin_key() {
    let server = start().await;
    assert_eq!(read(server.get("/admin/keys")).await.0, 404);
    let server = start_with(config(None)).await;
    for path in ["/admin/keys", "/admin/usage", "/admin/nothing", "/admin"] {
        assert_eq!(read(server.bare(Method::GET, path)).await.0, 401, "{path}");
        let (status, refused) = read(server.get(path)).await;
        assert_eq!((status, &refused["error"]["code"]), (401, &json!("invalid_api_key")), "{path}");
    }
    assert_eq!(read(admin(&server, Method::GET, "/nothing")).await.0, 404);
    let response = send(admin(&server, Method::PUT, "/keys")).await;
    assert_eq!(
        (response.status().as_u16(), response.headers()["allow"].to_str().ok()),
        (405, Some("GET, HEAD, POST"))
    );
}

#[tokio::test]
async fn admin_key_calls_client_operations_under_a_name_of_its_own_and_no_other_key_reaches_the_admin_api() {
    let server = start_with(config(None)).await;
    let (secret, _) = create(&server, json!({ "name": "ci" })).await;
    assert_eq!((lists(&server, ADMIN).await, chat(&server, ADMIN, "model-sol").await.0), (200, 200));
    // Header names of other protocols work, too; a query could end up in logs.
    let native = server.bare(Method::GET, "/v1beta/models");
    assert_eq!(read(native.header("x-goog-api-key", ADMIN)).await.0, 200);
    let (status, refused) = read(server.bare(Method::GET, &format!("/v1/models?key={ADMIN}"))).await;
    let message = refused["error"]["message"].as_str().expect("a message");
    assert_eq!(status, 401);
    assert!(message.contains("in a header only") && !message.contains(ADMIN), "{message}");

    let usage = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            let (_, report) = read(admin(&server, Method::GET, "/usage?by=key")).await;
            match report["usage"].get(0) {
                Some(row) => return row.clone(),
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    });
    let usage = usage.await.expect("usage is stored");
    assert_eq!(
        (&usage["key"], &usage["name"], &usage["requests"]),
        (&json!("admin"), &Value::Null, &json!(1))
    );
    let (_, one) = read(admin(&server, Method::GET, "/usage?by=key&key=admin")).await;
    assert_eq!(one["usage"], json!([usage]));
    // No other key may take the name.
    let (status, refused) =
        read(admin(&server, Method::POST, "/keys").json(&json!({ "name": "admin" }))).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("name")));

    for key in [&*secret, KEY] {
        for (method, path) in
            [(Method::GET, "/admin/keys"), (Method::POST, "/admin/keys"), (Method::GET, "/metrics")]
        {
            let request = server.bare(method, path).bearer_auth(key).json(&json!({ "name": "more" }));
            assert_eq!(read(request).await.0, 401, "{path}");
        }
    }
}

#[tokio::test]
async fn invalid_key_is_rejected_and_the_member_named() {
    let server = start_with(config(None)).await;
    let cases = [
        (json!({}), "name"),
        (json!({ "name": "" }), "name"),
        (json!({ "name": "a", "expires": 5 }), "expires"),
        (json!({ "name": "a", "limits": { "requests_per_minute": 0 } }), "limits.requests_per_minute"),
        (json!({ "name": "a", "limits": { "request_per_minute": 1 } }), "request_per_minute"),
        (json!({ "name": "a", "limits": { "file_bytes": 0 } }), "limits.file_bytes"),
        (json!({ "name": "a", "limits": { "cost_per_day": -1 } }), "limits.cost_per_day"),
        (json!({ "name": "a", "scopes": { "operations": ["chat"] } }), "scopes.operations"),
        (json!({ "name": "a", "scopes": { "model": ["m"] } }), "model"),
        (json!([]), "the body"),
    ];
    for (new, member) in cases {
        let (status, refused) = read(admin(&server, Method::POST, "/keys").json(&new)).await;
        let message = refused["error"]["message"].as_str().expect("a message");
        assert!(status == 400 && message.contains(member), "{new}: {message}");
    }
    create(&server, json!({ "name": "a" })).await;
    let (status, refused) = read(admin(&server, Method::POST, "/keys").json(&json!({ "name": "a" }))).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("name")));
    let wrong =
        ["/keys?revoke=true", "/keys?revoked=1", "/usage?form=2026-01-01", "/usage?by=hour", "/usage?from=x"];
    for path in wrong {
        assert_eq!(read(admin(&server, Method::GET, path)).await.0, 400, "{path}");
    }
}
