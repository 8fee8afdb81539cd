//! Where the key comes from: a text, the environment or a provider.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gatewright::{ApiKeyProvider, BoxFuture, Client, Error, ErrorKind, RequestOptions};

use crate::server::{Script, Server};
use crate::{COMPLETION, chat_call, chat_request, child};

/// Returns `key-1`, and a new key at each refresh.
#[derive(Default)]
struct Rotating {
    current: AtomicU32,
    refreshes: Mutex<Vec<bool>>,
}

impl ApiKeyProvider for Rotating {
    fn api_key(&self, refresh: bool) -> BoxFuture<'_, Result<String, Error>> {
        Box::pin(async move {
            self.refreshes.lock().unwrap().push(refresh);
            let before = self.current.fetch_add(u32::from(refresh), Ordering::Relaxed);
            Ok(format!("key-{}", before + u32::from(refresh) + 1))
        })
    }
}

fn client(server: &Server, provider: Arc<dyn ApiKeyProvider>) -> Client {
    Client::builder().base_url(server.url()).api_key_provider(provider).max_retries(0).build().unwrap()
}

fn keys(server: &Server) -> Vec<String> {
    let requests = server.requests();
    requests.iter().map(|request| request.header("authorization").unwrap_or_default().to_owned()).collect()
}

fn refused() -> Script {
    Script::whole(401, &[("x-should-retry", "false")], r#"{"error":{"message":"expired"}}"#)
}

#[tokio::test]
async fn key_provider_is_called_once_per_call() {
    let server = Server::start([Script::json(COMPLETION), Script::json(COMPLETION)]).await;
    let provider = Arc::new(Rotating::default());
    let client = client(&server, Arc::clone(&provider) as _);
    client.call(chat_call()).await.unwrap();
    client.chat().completions().create(&chat_request()).await.unwrap();
    assert_eq!(keys(&server), ["Bearer key-1", "Bearer key-1"]);
    assert_eq!(*provider.refreshes.lock().unwrap(), [false, false]);
    assert!(!format!("{client:?}").contains("key-1"));
}

#[tokio::test]
async fn rejected_key_is_refreshed_and_the_call_retried_exactly_once() {
    let server = Server::start([refused(), Script::json(COMPLETION)]).await;
    let provider = Arc::new(Rotating::default());
    let response = client(&server, Arc::clone(&provider) as _).call(chat_call()).await.unwrap();
    assert_eq!(response.attempts, 2);
    assert_eq!(keys(&server), ["Bearer key-1", "Bearer key-2"]);
    assert_eq!(*provider.refreshes.lock().unwrap(), [false, true]);
    let requests = server.requests();
    assert_eq!(requests[0].header("idempotency-key"), requests[1].header("idempotency-key"));
    assert_eq!(requests[1].header("x-gatewright-retry-count"), Some("1"));
}

#[tokio::test]
async fn stream_is_opened_with_the_refreshed_key() {
    let done = Script::events()
        .packet(
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        )
        .end();
    let server = Server::start([refused(), done]).await;
    let mut stream = client(&server, Arc::new(Rotating::default()))
        .chat()
        .completions()
        .stream(&chat_request())
        .await
        .unwrap();
    assert_eq!(stream.raw().attempts(), 2);
    assert!(stream.try_next().await.unwrap().is_some());
    assert_eq!(keys(&server), ["Bearer key-1", "Bearer key-2"]);
}

#[tokio::test]
async fn key_rejected_twice_ends_the_call() {
    let server = Server::start([refused(), refused(), Script::json(COMPLETION)]).await;
    let error = client(&server, Arc::new(Rotating::default())).call(chat_call()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Authentication, 2));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn key_refresh_does_not_count_as_a_retry() {
    let busy = || Script::whole(503, &[("retry-after-ms", "1")], "{}");
    let server = Server::start([busy(), refused(), busy(), Script::json(COMPLETION)]).await;
    let provider = Arc::new(Rotating::default());
    let options = RequestOptions { max_retries: Some(2), ..RequestOptions::default() };
    let response =
        client(&server, Arc::clone(&provider) as _).call(chat_call().options(options)).await.unwrap();
    assert_eq!(response.attempts, 4);
    assert_eq!(*provider.refreshes.lock().unwrap(), [false, true]);
}

#[tokio::test]
async fn rejected_fixed_key_is_not_retried() {
    let server = Server::start([refused()]).await;
    let error = server.client().call(chat_call()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Authentication, 1));
}

#[tokio::test]
async fn callers_authorization_header_replaces_the_key() {
    let server = Server::start([refused()]).await;
    let provider = Arc::new(Rotating::default());
    let options = RequestOptions {
        extra_headers: vec![("Authorization".to_owned(), "Bearer mine".to_owned())],
        ..RequestOptions::default()
    };
    let error =
        client(&server, Arc::clone(&provider) as _).call(chat_call().options(options)).await.unwrap_err();
    assert_eq!(error.attempts(), 1);
    assert_eq!(keys(&server), ["Bearer mine"]);
    assert!(provider.refreshes.lock().unwrap().is_empty());
}

#[tokio::test]
async fn failing_provider_fails_the_call_with_its_error_as_the_cause() {
    let server = Server::start([refused()]).await;
    let failing = |kind: ErrorKind| {
        move |_: bool| -> BoxFuture<'static, Result<String, Error>> {
            Box::pin(async move { Err(Error::new(kind, "the vault is sealed").with_source("seal 7")) })
        }
    };
    let own =
        client(&server, Arc::new(failing(ErrorKind::Configuration))).call(chat_call()).await.unwrap_err();
    assert_eq!((own.kind(), own.attempts()), (ErrorKind::Configuration, 0));
    assert_eq!(own.operation(), Some("create_chat_completion"));
    assert_eq!(std::error::Error::source(&own).unwrap().to_string(), "seal 7");

    let other = client(&server, Arc::new(failing(ErrorKind::Io))).call(chat_call()).await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Authentication);
    assert!(other.message().contains("the vault is sealed"), "{other}");
    let cause = std::error::Error::source(&other).unwrap().downcast_ref::<Error>().unwrap();
    assert_eq!(cause.kind(), ErrorKind::Io);

    let unsendable = |_: bool| -> BoxFuture<'static, Result<String, Error>> {
        Box::pin(async { Ok("canary\n".to_owned() + "x") })
    };
    let bad = client(&server, Arc::new(unsendable)).call(chat_call()).await.unwrap_err();
    assert_eq!(bad.kind(), ErrorKind::Configuration);
    assert!(!format!("{bad} {bad:?}").contains("canary"), "{bad:?}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn deadline_bounds_the_wait_for_a_provider() {
    let server = Server::start([]).await;
    let stuck = |_: bool| -> BoxFuture<'static, Result<String, Error>> { Box::pin(std::future::pending()) };
    let options = RequestOptions { timeout: Some(Duration::from_millis(100)), ..RequestOptions::default() };
    let error = client(&server, Arc::new(stuck)).call(chat_call().options(options)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.message().contains("provider"), "{error}");
}

#[test]
fn key_and_a_key_provider_conflict() {
    let builder = Client::builder().api_key("k").api_key_provider(Arc::new(Rotating::default()));
    assert_eq!(builder.build().unwrap_err().kind(), ErrorKind::Configuration);
}

#[tokio::test]
async fn missing_key_error_explains_how_to_set_one() {
    if child::task().is_some() {
        let error = Client::builder().build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        let expected =
            "there is no API key: set GATEWRIGHT_API_KEY, or pass one to the builder: `.api_key(…)`";
        assert_eq!(error.message(), expected);
        return;
    }
    // An empty variable counts as unset.
    let variables = [("GATEWRIGHT_API_KEY", "")];
    let output = child::run("keys::missing_key_error_explains_how_to_set_one", "build", &variables).await;
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test]
async fn key_and_address_come_from_the_environment() {
    if child::task().is_some() {
        Client::from_env().unwrap().call(chat_call()).await.unwrap();
        return;
    }
    let server = Server::start([Script::json(COMPLETION)]).await;
    let variables = [("GATEWRIGHT_BASE_URL", server.url()), ("GATEWRIGHT_API_KEY", "sk-env".to_owned())];
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let output = child::run("keys::key_and_address_come_from_the_environment", "call", &variables).await;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(keys(&server), ["Bearer sk-env"]);
}
