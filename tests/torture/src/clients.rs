//! Clients: the Rust package, with a client for each node and key. Each call is recorded before it is made, and its result when
//! it is over.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use gatewright::types::{ChatCompletionRequest, ResponseRequest, VideoGenerationRequest};
use gatewright::{Client, Error, RequestOptions};
use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};

use crate::expected::{self, FILM, TEXT};
use crate::history::{Event, History, Limits, Operation, Outcome};

/// The key in the configuration of all nodes.
pub(crate) const DEFAULT: &str = "default";
/// The name under which that key is counted at the standalone node.
pub(crate) const DEFAULT_ALONE: &str = "default of the node alone";
/// The key that creates and revokes keys.
const ADMIN: &str = "admin";
/// How long a call may take: longer than a node hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);
/// More tokens than a response has.
const MAX_TOKENS: u64 = 64;

/// See the module.
pub(crate) struct Clients {
    pub(crate) history: Arc<History>,
    urls: Vec<String>,
    admin_key: String,
    admin: reqwest::Client,
    known: Mutex<KnownKeys>,
    intents: AtomicU64,
}

#[derive(Default)]
struct KnownKeys {
    secrets: HashMap<String, String>,
    clients: HashMap<(usize, String), Client>,
}

impl Clients {
    /// `urls`: of the nodes.
    pub(crate) fn new(history: Arc<History>, urls: Vec<String>, key: &str, admin_key: &str) -> Result<Self> {
        let mut known = KnownKeys::default();
        for name in [DEFAULT, DEFAULT_ALONE] {
            known.secrets.insert(name.to_owned(), key.to_owned());
        }
        let admin = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
        let (known, intents) = (Mutex::new(known), AtomicU64::new(1));
        Ok(Self { history, urls, admin_key: admin_key.to_owned(), admin, known, intents })
    }

    /// A number that no other request has.
    pub(crate) fn intent(&self) -> u64 {
        self.intents.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) async fn chat(&self, node: usize, key: &str, stream: bool) -> Outcome {
        self.chat_about(node, key, self.intent(), stream, None).await
    }

    /// `once`: the idempotency key.
    pub(crate) async fn chat_about(
        &self,
        node: usize,
        key: &str,
        intent: u64,
        stream: bool,
        once: Option<&str>,
    ) -> Outcome {
        let operation = Operation::Chat { intent, stream, once: once.map(str::to_owned) };
        self.perform(node, key, operation, async |client| {
            let mut request = json!({ "model": TEXT, "max_tokens": MAX_TOKENS,
                "messages": [{ "role": "user", "content": expected::prompt(intent) }] });
            if !stream {
                let request: ChatCompletionRequest = read(request);
                let answer = client.chat().completions().create(&request).await?;
                let answer = written(&*answer);
                let text = &answer["choices"][0]["message"]["content"];
                return Ok(text_of(&answer["id"], text, &answer["usage"]));
            }
            request["stream_options"] = json!({ "include_usage": true });
            let request: ChatCompletionRequest = read(request);
            let mut chunks = client.chat().completions().stream(&request).await?;
            let (mut id, mut text, mut usage) = (Value::Null, String::new(), Value::Null);
            while let Some(chunk) = chunks.try_next().await? {
                text.push_str(chunk.text().unwrap_or_default());
                let chunk = written(&chunk);
                id = chunk["id"].clone();
                if chunk["usage"].is_object() {
                    usage = chunk["usage"].clone();
                }
            }
            Ok(text_of(&id, &json!(text), &usage))
        })
        .await
    }

    /// `once`: the idempotency key.
    pub(crate) async fn respond(&self, node: usize, key: &str, intent: u64, once: Option<&str>) -> Outcome {
        let operation = Operation::Respond { intent, once: once.map(str::to_owned) };
        self.perform(node, key, operation, async |client| {
            let request = ResponseRequest::new(TEXT, expected::prompt(intent).as_str());
            Ok(response(&*client.responses().create(&request).await?))
        })
        .await
    }

    /// The stored response to an intent. `id`: its own.
    pub(crate) async fn retrieve(&self, node: usize, key: &str, intent: u64, id: &str) -> Outcome {
        self.perform(node, key, Operation::Retrieve { intent, id: id.to_owned() }, async |client| {
            Ok(response(&*client.responses().retrieve(id).await?))
        })
        .await
    }

    /// `once`: the idempotency key. `hook`: the receiver of notifications.
    pub(crate) async fn submit(
        &self,
        node: usize,
        key: &str,
        intent: u64,
        once: Option<&str>,
        hook: Option<&str>,
    ) -> Outcome {
        let operation = Operation::Submit { intent, once: once.map(str::to_owned), notifies: hook.is_some() };
        self.perform(node, key, operation, async |client| {
            let mut request = json!({ "model": FILM, "prompt": expected::prompt(intent), "duration": 4 });
            if let Some(hook) = hook {
                request["webhook_url"] = json!(hook);
            }
            let request: VideoGenerationRequest = read(request);
            Ok(Outcome::Task { task: written(&*client.videos().generations().create(&request).await?) })
        })
        .await
    }

    pub(crate) async fn look_up(&self, node: usize, key: &str, task: &str) -> Outcome {
        self.perform(node, key, Operation::LookUp { task: task.to_owned() }, async |client| {
            Ok(Outcome::Task { task: written(&*client.videos().generations().retrieve(task).await?) })
        })
        .await
    }

    /// Reads the file of a task from a node. `url`: as any node wrote it.
    pub(crate) async fn fetch(&self, node: usize, key: &str, task: &str, url: &str) -> Outcome {
        let path =
            url.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
        let url = format!("{}/{path}", self.urls[node]);
        self.perform(node, key, Operation::Fetch { task: task.to_owned() }, async |client| {
            let mut download = client.download(&url).await?;
            let mut file = Vec::new();
            while let Some(piece) = download.chunk().await? {
                file.extend_from_slice(&piece);
            }
            Ok(Outcome::File { digest: expected::digest(&file) })
        })
        .await
    }

    /// Creates a key with this name.
    pub(crate) async fn create_key(&self, node: usize, name: &str, limits: Limits) -> Outcome {
        let operation = Operation::CreateKey { name: name.to_owned(), limits };
        let call = self.history.call(node, ADMIN, operation);
        let made =
            self.admin(node, Method::POST, "keys", Some(json!({ "name": name, "limits": limits }))).await;
        let outcome = made.map_or_else(
            |refusal| refusal,
            |issued| {
                let secret = issued["secret"].as_str().unwrap_or_default().to_owned();
                self.known().secrets.insert(name.to_owned(), secret);
                Outcome::Done
            },
        );
        self.answered(call, outcome)
    }

    pub(crate) async fn revoke_key(&self, node: usize, name: &str) -> Outcome {
        let call = self.history.call(node, ADMIN, Operation::RevokeKey { name: name.to_owned() });
        let revoked = self.admin(node, Method::DELETE, &format!("keys/{name}"), None).await;
        self.answered(call, revoked.map_or_else(|refusal| refusal, |_| Outcome::Done))
    }

    /// What the store has counted, by key and model.
    pub(crate) async fn usage(&self, node: usize) -> Option<Vec<Value>> {
        let report = self.admin(node, Method::GET, "usage?by=key,model", None).await.ok()?;
        report["usage"].as_array().cloned()
    }

    async fn admin(
        &self,
        node: usize,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, Outcome> {
        let request = self.admin.request(method, format!("{}/admin/{path}", self.urls[node]));
        let request = request.bearer_auth(&self.admin_key);
        let request = body.iter().fold(request, reqwest::RequestBuilder::json);
        let lost = |error: reqwest::Error| Outcome::Lost { why: error.to_string() };
        let response = request.send().await.map_err(lost)?;
        let status = response.status().as_u16();
        let document: Value = response.json().await.map_err(lost)?;
        if (200..300).contains(&status) {
            return Ok(document);
        }
        let code = document["error"]["code"].as_str().unwrap_or_default().to_owned();
        Err(Outcome::Refused { status, code })
    }

    async fn perform(
        &self,
        node: usize,
        key: &str,
        operation: Operation,
        ask: impl AsyncFnOnce(Client) -> Result<Outcome, Error>,
    ) -> Outcome {
        let idempotency_key = operation.once().map(str::to_owned);
        let options = RequestOptions { idempotency_key, ..RequestOptions::default() };
        let client = self.client(node, key).with_options(options);
        let call = self.history.call(node, key, operation);
        let outcome = ask(client).await.unwrap_or_else(|error| refusal(&error));
        self.answered(call, outcome)
    }

    fn answered(&self, call: u64, outcome: Outcome) -> Outcome {
        self.history.add(Event::Answered { call, outcome: outcome.clone() });
        outcome
    }

    fn client(&self, node: usize, key: &str) -> Client {
        let mut known = self.known();
        let KnownKeys { secrets, clients } = &mut *known;
        let client = clients.entry((node, key.to_owned())).or_insert_with(|| {
            // Each attempt is a separate call in the history.
            let builder = Client::builder().base_url(&self.urls[node]).api_key(secrets[key].clone());
            builder.max_retries(0).timeout(PATIENCE).no_proxy().build().expect("valid options")
        });
        client.clone()
    }

    fn known(&self) -> MutexGuard<'_, KnownKeys> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read<T: serde::de::DeserializeOwned>(request: Value) -> T {
    serde_json::from_value(request).expect("a request")
}

fn written(answer: &impl Serialize) -> Value {
    serde_json::to_value(answer).expect("plain values")
}

fn text_of(id: &Value, text: &Value, usage: &Value) -> Outcome {
    let count = |names: [&str; 2]| names.iter().find_map(|name| usage[name].as_u64()).unwrap_or_default();
    Outcome::Text {
        id: id.as_str().unwrap_or_default().to_owned(),
        text: text.as_str().unwrap_or_default().to_owned(),
        input: count(["prompt_tokens", "input_tokens"]),
        output: count(["completion_tokens", "output_tokens"]),
    }
}

fn response(response: &gatewright::types::Response) -> Outcome {
    let document = written(response);
    text_of(&document["id"], &json!(response.output_text()), &document["usage"])
}

/// What an error means for the call: it was rejected, or its outcome is unknown.
fn refusal(error: &Error) -> Outcome {
    match error.status() {
        Some(status) if status >= 400 => {
            Outcome::Refused { status, code: error.code().unwrap_or_default().to_owned() }
        }
        _ => Outcome::Lost { why: error.to_string() },
    }
}
