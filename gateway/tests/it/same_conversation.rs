//! One conversation in each protocol, through a running gateway to an upstream of each kind: every upstream
//! gets the same conversation from every client, and every client the same answer from every upstream.

mod answer_details;
mod answers;
mod client_parser;
mod request_details;
mod requests;

use gatewright_gateway::{Config, ModelConfig, TargetConfig};
use serde_json::{Map, Value};

use self::answers::{streamed, whole};
use self::client_parser::{expected, parse_response, parse_stream};
use self::requests::{native_path, request};
use crate::callers::Protocol;
use crate::support::{Server, events, send, start_with};
use crate::upstreams::{STREAM_HEAD, Scripted, Seen, Step, answer, upstream};

/// One upstream of each kind, and a gateway with a model at each.
struct Bench {
    upstreams: Vec<(Protocol, Scripted)>,
    server: Server,
}

/// The outcome of a request.
struct Exchange {
    /// The body that the upstream received.
    sent: Value,
    /// What the gateway reports as dropped.
    dropped: String,
    /// The body that the client received.
    received: String,
    is_stream: bool,
}

fn model_at(speaks: Protocol) -> String {
    format!("at-{}", speaks.name())
}

impl Bench {
    /// `steps`: the upstreams' responses.
    async fn start(steps: fn(&Seen) -> Vec<Step>) -> Self {
        let mut upstreams = Vec::new();
        for speaks in Protocol::ALL {
            upstreams.push((speaks, Scripted::answering(steps).await));
        }
        let models = Protocol::ALL.map(|speaks| {
            let mut model =
                ModelConfig::new(model_at(speaks), "family_one", TargetConfig::new(speaks.name(), "theirs"));
            model.translate_responses = true;
            model
        });
        let listed =
            upstreams.iter().map(|(speaks, scripted)| upstream(speaks.name(), speaks.kind(), &scripted.url));
        let config = Config { upstreams: listed.collect(), models: models.into(), ..Config::default() };
        Self { upstreams, server: start_with(config).await }
    }

    /// Calls an upstream, and returns the body that it received and what the gateway reports as dropped. Asserts that the client
    /// parses the answer.
    async fn ask(&self, client: Protocol, speaks: Protocol, path: &str, body: &Value) -> (Value, String) {
        let Exchange { sent, dropped, received, is_stream } = self.exchange(client, speaks, path, body).await;
        let parsed = if is_stream {
            parse_stream(client, &events(&received))
        } else {
            parse_response(client, &serde_json::from_str(&received).expect("JSON"))
        };
        assert_eq!(parsed, expected(), "{client:?} at {speaks:?}, {path}: {received}");
        (sent, dropped)
    }

    /// Calls an upstream.
    async fn exchange(&self, client: Protocol, speaks: Protocol, path: &str, body: &Value) -> Exchange {
        let here = format!("{client:?} at {speaks:?}, {path}");
        let (_, scripted) = self.upstreams.iter().find(|(one, _)| *one == speaks).expect("each kind");
        let count = scripted.count();
        let response = send(self.server.post(path, body)).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let received = response.text().await.expect("a body");
        assert_eq!(status, 200, "{here}: {received}");
        let seen = scripted.seen();
        assert_eq!(seen.len(), count + 1, "{here}");
        let dropped =
            headers.get("x-gatewright-dropped").map(|value| value.to_str().expect("ASCII").to_owned());
        let kind = headers["content-type"].to_str().expect("ASCII");
        Exchange {
            sent: normal(seen[count].json()),
            dropped: dropped.unwrap_or_default(),
            received,
            is_stream: kind.starts_with("text/event-stream"),
        }
    }

    /// What the upstreams receive from clients of other protocols: by kind, and by client.
    async fn translated(&self, stream: bool, stops: bool) -> Vec<(Protocol, Protocol, Value, String)> {
        let mut got = Vec::new();
        for (speaks, client) in pairs() {
            let (path, body) = request(client, &model_at(speaks), stream, stops);
            let (sent, dropped) = self.ask(client, speaks, &path, &body).await;
            if speaks.spoken_for(client) == client {
                // Only the model is changed.
                assert_eq!(sent, normal(body), "{client:?} at {speaks:?}");
                assert_eq!(dropped, "", "{client:?} at {speaks:?}");
            } else {
                got.push((speaks, client, sent, dropped));
            }
        }
        got
    }
}

fn pairs() -> impl Iterator<Item = (Protocol, Protocol)> {
    Protocol::ALL.into_iter().flat_map(|speaks| Protocol::ALL.map(|client| (speaks, client)))
}

/// An upstream's response in a protocol: a document, or the events of a stream.
type Words<T> = fn(Protocol) -> T;

/// An upstream answers in the protocol in which it is called.
fn steps(seen: &Seen) -> Vec<Step> {
    answering(seen, whole, streamed)
}

fn answering(seen: &Seen, whole: Words<Value>, streamed: Words<String>) -> Vec<Step> {
    let speaks = Protocol::of(seen);
    if seen.path().contains("streamGenerateContent") || seen.json()["stream"] == true {
        vec![Step::Write(format!("{STREAM_HEAD}{}", streamed(speaks)).into()), Step::Close]
    } else {
        vec![Step::Write(answer(200, "application/json", &whole(speaks).to_string()))]
    }
}

/// A body without the model's name, and without explicit defaults: `stream` and a tool's
/// `strict` set to false.
fn normal(mut body: Value) -> Value {
    fn walk(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|name, value| !(name == "strict" && *value == false));
                members.values_mut().for_each(walk);
            }
            Value::Array(items) => items.iter_mut().for_each(walk),
            _ => {}
        }
    }
    walk(&mut body);
    let members: &mut Map<String, Value> = body.as_object_mut().expect("an object");
    members.remove("model");
    members.retain(|name, value| !(name == "stream" && *value == false));
    body
}

/// An upstream gets the same request from every client, and every client parses the same answer, unary and streamed. A translated
/// request means what the upstream's own clients send: sent to the gateway in that protocol, it reaches every other
/// upstream in the same form as everyone else's.
#[tokio::test]
async fn same_conversation_is_translated_identically_from_each_client() {
    let bench = Bench::start(steps).await;
    for stream in [false, true] {
        let got = bench.translated(stream, false).await;
        for (speaks, client, sent, dropped) in &got {
            assert_eq!(dropped, "", "{client:?} at {speaks:?}");
            let (_, first, words, _) = got.iter().find(|(one, ..)| one == speaks).expect("one");
            assert_eq!(sent, words, "{client:?} and {first:?} at {speaks:?}, stream: {stream}");
        }
        for (from, _, words, _) in &got {
            for (speaks, _, expected, _) in
                got.iter().filter(|(speaks, client, ..)| speaks != from && client == from)
            {
                let mut body = words.clone();
                let path = if *from == Protocol::Native {
                    native_path(&model_at(*speaks), stream)
                } else {
                    body["model"] = model_at(*speaks).into();
                    request(*from, "", stream, false).0
                };
                let (sent, dropped) = bench.ask(*from, *speaks, &path, &body).await;
                assert_eq!(&sent, expected, "written for {from:?}, at {speaks:?}, stream: {stream}");
                assert_eq!(dropped, "", "written for {from:?}, at {speaks:?}");
            }
        }
    }
}

/// A stop sequence reaches every upstream whose protocol has one. For the responses protocol, the gateway applies it to the answer.
#[tokio::test]
async fn stop_sequence_reaches_every_upstream_that_supports_it() {
    let bench = Bench::start(steps).await;
    let without = bench.translated(false, false).await;
    let got = bench.translated(false, true).await;
    for ((speaks, client, sent, dropped), (.., silent, _)) in got.iter().zip(&without) {
        let here = format!("{client:?} at {speaks:?}");
        if *client == Protocol::Responses || *speaks == Protocol::Responses {
            assert_eq!((sent, dropped.as_str()), (silent, ""), "{here}");
        } else {
            assert_ne!(sent, silent, "{here}");
            assert_eq!(dropped, "", "{here}");
            let alike = got.iter().filter(|(one, by, ..)| one == speaks && *by != Protocol::Responses);
            for (_, by, other, _) in alike {
                assert_eq!(sent, other, "{here}, and of {by:?}");
            }
        }
    }
}
