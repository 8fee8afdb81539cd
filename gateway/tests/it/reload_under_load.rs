//! Reloads under load: no request fails, and requests in progress end as they began.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gatewright_gateway::{ApiKey, Config, Control, Gateway, Kind, ModelConfig, TargetConfig};
use reqwest::RequestBuilder;
use tokio::sync::oneshot;

use crate::callers::{End, Protocol, TEXT, text_of};
use crate::support::{KEY, events};
use crate::upstreams::{STREAM_HEAD, Scripted, Step, completion, json_answer, stream, upstream};

/// Clients that send requests continuously.
const CLIENTS: usize = 8;
/// Number of reloads.
const RELOADS: usize = 60;
const PATIENCE: Duration = Duration::from_mins(1);

struct Serving {
    url: String,
    control: Control,
    client: reqwest::Client,
    _stop: oneshot::Sender<()>,
}

async fn serve(config: &Config) -> Serving {
    _ = rustls::crypto::ring::default_provider().install_default();
    let gateway = Gateway::bind(config.clone()).await.expect("a free port");
    let (url, control) = (gateway.url(), gateway.control());
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(gateway.serve(async {
        _ = stopped.await;
    }));
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    Serving { url, control, client, _stop: stop }
}

impl Serving {
    fn post(&self, client: Protocol, model: &str, stream: bool) -> RequestBuilder {
        let (path, body) = client.request(model, stream);
        self.client.post(format!("{}{path}", self.url)).bearer_auth(KEY).json(&body)
    }
}

/// The model `mine` at one upstream of this name, and another model that no other configuration has.
fn config(name: &str, url: &str) -> Config {
    let model = |id: String| {
        let mut model = ModelConfig::new(id, "family_one", TargetConfig::new(name, "theirs"));
        model.translate_responses = true;
        model
    };
    let (mine, beside) = (model("mine".to_owned()), model(format!("only-{name}")));
    Config {
        listen: vec!["127.0.0.1:0".to_owned()],
        key: Some(ApiKey::new(KEY).expect("a valid key")),
        upstreams: vec![upstream(name, Kind::Chat, url)],
        models: vec![mine, beside],
        ..Config::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reloads_under_load_fail_no_request() {
    let whole = Scripted::start([json_answer(200, &completion(TEXT))]).await;
    let streaming = Scripted::start([stream(&Protocol::Chat.events())]).await;
    // The same name with another address, another name, and both; an upstream that disappears and returns.
    let mut both = config("one", &whole.url);
    both.upstreams.push(upstream("two", Kind::Chat, &whole.url));
    both.models[0].targets.push(TargetConfig::new("two", "theirs"));
    let mut sets = [config("one", &whole.url), config("two", &whole.url), both];
    for set in &mut sets {
        set.upstreams.push(upstream("streaming", Kind::Chat, &streaming.url));
        let mut flowing = ModelConfig::new("flowing", "family_one", TargetConfig::new("streaming", "theirs"));
        flowing.translate_responses = true;
        set.models.push(flowing);
    }
    let serving = Arc::new(serve(&sets[0]).await);
    let over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (serving, over) = (Arc::clone(&serving), Arc::clone(&over));
            tokio::spawn(async move {
                let mut requests = 0;
                // Each protocol, unary and streamed.
                let (client, flows) = (Protocol::ALL[number % 4], number >= CLIENTS / 2);
                let model = if flows { "flowing" } else { "mine" };
                while !over.load(Ordering::Relaxed) || requests == 0 {
                    let response = serving.post(client, model, flows).send().await.expect("an answer");
                    let status = response.status();
                    let text = response.text().await.expect("a whole body");
                    assert_eq!(status, 200, "{text}");
                    if flows {
                        assert_eq!(client.end(&text), End::Success, "{text}");
                        assert_eq!(text_of(client, &events(&text)), TEXT);
                    } else {
                        let answer = serde_json::from_str(&text).expect("JSON");
                        assert_eq!(client.text(&answer), Some(TEXT), "{text}");
                    }
                    requests += 1;
                }
                requests
            })
        })
        .collect();
    let (mut turn, started) = (0, Instant::now());
    for _ in 0..RELOADS {
        turn = (turn + 1) % sets.len();
        assert!(serving.control.reload(&sets[turn]).expect("reloaded").waiting.is_empty());
        // Requests are served between two reloads.
        let before = whole.count();
        while whole.count() < before + CLIENTS {
            assert!(
                started.elapsed() < PATIENCE && !clients.iter().any(tokio::task::JoinHandle::is_finished),
                "a client stopped"
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // The other configuration is in effect.
        let only = |set: &Config| set.models[1].id.clone();
        assert_eq!(
            serving.post(Protocol::Chat, &only(&sets[turn]), false).send().await.expect("an answer").status(),
            200
        );
        let other = (turn + 1) % sets.len();
        if only(&sets[other]) != only(&sets[turn]) {
            let response =
                serving.post(Protocol::Chat, &only(&sets[other]), false).send().await.expect("an answer");
            assert_eq!(response.status(), 404);
        }
    }
    over.store(true, Ordering::Relaxed);
    let mut requests = 0;
    for client in clients {
        requests += client.await.expect("no request failed");
    }
    assert!(requests >= RELOADS * CLIENTS, "{requests}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stream_in_flight_survives_the_removal_of_its_upstream() {
    let whole = Protocol::Chat.events();
    let cut = whole.find("\n\n").expect("an event") + 2;
    let slow = Scripted::start([vec![
        Step::Write(format!("{STREAM_HEAD}{}", &whole[..cut]).into()),
        Step::Pause(Duration::from_millis(700)),
        Step::Write(whole[cut..].into()),
        Step::Close,
    ]])
    .await;
    let other = Scripted::start([json_answer(200, &completion("other"))]).await;
    let serving = serve(&config("one", &slow.url)).await;
    for client in Protocol::ALL {
        serving.control.reload(&config("one", &slow.url)).expect("reloaded");
        let mut response = serving.post(client, "mine", true).send().await.expect("an answer");
        let first = response.chunk().await.expect("bytes").expect("an event");
        serving.control.reload(&config("two", &other.url)).expect("reloaded");
        // New requests use the new configuration while the stream is in progress.
        let answer = serving.post(Protocol::Chat, "mine", false).send().await.expect("an answer");
        assert_eq!(answer.headers()["x-gatewright-upstream"], "two");
        let mut text = String::from_utf8(first.to_vec()).expect("text");
        assert_ne!(client.end(&text), End::Success, "the stream was over before the reload");
        while let Some(more) = response.chunk().await.expect("bytes") {
            text += std::str::from_utf8(&more).expect("text");
        }
        assert_eq!(client.end(&text), End::Success, "{client:?}: {text}");
        assert_eq!(text_of(client, &events(&text)), TEXT);
    }
}
