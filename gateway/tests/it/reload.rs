//! Configured keys that change while the gateway runs.

use gatewright_gateway::{ApiKey, Config, Control, Gateway};
use reqwest::Method;
use serde_json::json;
use tokio::sync::oneshot;

use crate::support::{KEY, read};

const ADMIN: &str = "gw-admin-5b1e";

struct Running {
    url: String,
    /// The key printed at startup.
    generated_key: String,
    config: Config,
    control: Control,
    client: reqwest::Client,
    _stop: oneshot::Sender<()>,
}

#[expect(clippy::unnecessary_wraps, reason = "the type of the configuration's member")]
fn key(text: &str) -> Option<ApiKey> {
    Some(ApiKey::new(text).expect("a valid key"))
}

async fn start(key: Option<ApiKey>, admin_key: Option<ApiKey>) -> Running {
    _ = rustls::crypto::ring::default_provider().install_default();
    let config = Config { listen: vec!["127.0.0.1:0".to_owned()], key, admin_key, ..Config::default() };
    let gateway = Gateway::bind(config.clone()).await.expect("a free port");
    let (url, generated_key, control) = (gateway.url(), gateway.key().expose().to_owned(), gateway.control());
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(gateway.serve(async {
        _ = stopped.await;
    }));
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    Running { url, generated_key, config, control, client, _stop: stop }
}

impl Running {
    /// The status of a request with a key.
    async fn status(&self, path: &str, key: &str) -> u16 {
        let request = self.client.request(Method::GET, format!("{}{path}", self.url)).bearer_auth(key);
        request.send().await.expect("an answer").status().as_u16()
    }

    /// Reloads with other keys, and returns the names of those replaced and removed.
    fn reload(
        &self,
        key: Option<ApiKey>,
        admin_key: Option<ApiKey>,
    ) -> (Vec<&'static str>, Vec<&'static str>) {
        let config = Config { key, admin_key, ..self.config.clone() };
        let reloaded = self.control.reload(&config).expect("reloaded");
        assert!(reloaded.waiting.is_empty(), "{reloaded:?}");
        (reloaded.replaced, reloaded.removed)
    }
}

#[tokio::test]
async fn replaced_keys_take_effect_at_once() {
    let gateway = start(key(KEY), key(ADMIN)).await;
    assert_eq!(gateway.status("/v1/models", KEY).await, 200);
    assert_eq!(gateway.reload(key(KEY), key(ADMIN)), (vec![], vec![]));
    assert_eq!(
        gateway.reload(key("new"), key("new-admin")),
        (vec!["access.key", "access.admin_key"], vec![])
    );
    for (path, old, new) in [("/v1/models", KEY, "new"), ("/admin/keys", ADMIN, "new-admin")] {
        assert_eq!(gateway.status(path, old).await, 401, "{path}");
        assert_eq!(gateway.status(path, new).await, 200, "{path}");
    }
}

#[tokio::test]
async fn removed_keys_are_rejected_and_the_admin_api_disappears() {
    let gateway = start(key(KEY), key(ADMIN)).await;
    let request = gateway.client.post(format!("{}/admin/keys", gateway.url)).bearer_auth(ADMIN);
    let (status, issued) = read(request.json(&json!({ "name": "stored" }))).await;
    assert!((200..300).contains(&status), "{issued}");
    let stored = issued["secret"].as_str().expect("a secret");
    for removed in [vec!["access.key", "access.admin_key"], vec![]] {
        assert_eq!(gateway.reload(None, None), (vec![], removed));
        assert_eq!(gateway.status("/v1/models", KEY).await, 401);
        assert_eq!(gateway.status("/admin/keys", ADMIN).await, 404);
        assert_eq!(gateway.status("/v1/models", stored).await, 200, "a key of the store stays");
    }
    assert_eq!(gateway.reload(key("new"), key(ADMIN)).0, ["access.key", "access.admin_key"]);
    assert_eq!(gateway.status("/v1/models", "new").await, 200);
    assert_eq!(gateway.status("/admin/keys", ADMIN).await, 200);
}

#[tokio::test]
async fn generated_key_returns_when_the_file_has_none() {
    let gateway = start(None, None).await;
    assert_eq!(gateway.status("/v1/models", &gateway.generated_key).await, 200);
    assert_eq!(gateway.reload(None, None), (vec![], vec![]));
    assert_eq!(gateway.reload(key(KEY), None).0, ["access.key"]);
    assert_eq!(gateway.status("/v1/models", &gateway.generated_key).await, 401);
    assert_eq!(gateway.reload(None, None).0, ["access.key"]);
    assert_eq!(gateway.status("/v1/models", &gateway.generated_key).await, 200);
    assert_eq!(gateway.status("/v1/models", KEY).await, 401);
}
