//! Databases that go away and come back.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use gatewright_test_stores::{Network, Postgres, Way};

use tokio::time::timeout;

use super::kinds::at;
use crate::traits::{KeyStore, KeyedRequest, LocationStore as _, ReplaySlot, ReplayStore as _};
use crate::traits::{LocationChange, ResponseLocation, StoringUpstream};
use crate::{SqlStore, StoreUrl};

/// Maximum duration of an operation under any circumstances.
const PATIENCE: Duration = Duration::from_secs(30);

fn location_change(id: &str) -> [LocationChange; 1] {
    let holder = StoringUpstream { upstream: "one".into(), key: None, model: "mine".into() };
    [LocationChange::Kept(ResponseLocation { id: id.into(), owner: "k".into(), holder })]
}

/// It fails in bounded time, and reports why without any secret.
async fn fails(store: &SqlStore, secret: &str) -> String {
    let started = Instant::now();
    let error = store.revision().await.expect_err("no store").to_string();
    assert!(started.elapsed() < PATIENCE && !error.contains(secret), "{:?}: {error}", started.elapsed());
    error
}

mod postgres {
    use super::*;

    #[tokio::test]
    async fn restarted_server_is_used_again() {
        let mut server = Postgres::start();
        let store = at(&server);
        store.change_places(&location_change("a")).await.expect("a store");
        server.stop();
        fails(&store, server.password()).await;
        assert!(store.change_places(&location_change("b")).await.is_err());
        server.resume();
        store.change_places(&location_change("c")).await.expect("a store");
        let ids: Vec<_> = store.places().await.expect("a store").into_iter().map(|place| place.id).collect();
        assert_eq!(ids, ["a", "c"].map(std::sync::Arc::<str>::from));
    }

    #[tokio::test]
    async fn silent_network_fails_in_bounded_time_and_recovers() {
        let server = Postgres::start();
        let network = Network::new();
        let url = StoreUrl::new(&network.url_of(&server)).expect("an address");
        let store = SqlStore::at(&url).expect("a store");
        store.revision().await.expect("a store");
        network.set(Way::Silent);
        let error = fails(&store, server.password()).await;
        assert!(error.contains("does not respond"), "{error}");
        network.set(Way::Open);
        store.revision().await.expect("a store");
        network.set(Way::Broken);
        fails(&store, server.password()).await;
        network.set(Way::Open);
        store.revision().await.expect("a store");
    }

    /// What an operation returns, unless it waits a number of times: then it is abandoned.
    async fn abandoned_at<T>(waits: u32, operation: impl Future<Output = T>) -> Option<T> {
        let mut operation = pin!(operation);
        let mut left = waits;
        poll_fn(|context| match operation.as_mut().poll(context) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending => {
                left -= 1;
                if left == 0 { Poll::Ready(None) } else { Poll::Pending }
            }
        })
        .await
    }

    #[tokio::test]
    async fn operation_abandoned_anywhere_leaves_no_transaction_to_the_next_one() {
        let (server, network) = (Postgres::start(), Network::new());
        // This thread also runs the network: nothing is answered before the operation waits for it.
        let url = StoreUrl::new(&network.url_of(&server)).expect("an address");
        let (store, other) = (SqlStore::at(&url).expect("a store"), at(&server));
        for store in [&store, &other] {
            store.revision().await.expect("a store");
        }
        let mut waits = 0;
        loop {
            waits += 1;
            let change = location_change(&waits.to_string());
            let is_over = abandoned_at(waits, store.change_places(&change)).await.is_some();
            // The connection returns to the pool.
            tokio::time::sleep(Duration::from_millis(100)).await;
            let (owner, slot) = ("key_1".into(), waits.to_string());
            let keyed = KeyedRequest { slot, operation: "createVideo", owner, fingerprint: [0; 32] };
            let slot = store.reserve_as(&keyed, 1, PATIENCE).await.expect("a store");
            assert!(matches!(slot, ReplaySlot::First(_)), "{waits}: {slot:?}");
            let seen = timeout(Duration::from_secs(5), other.reserve_as(&keyed, 2, PATIENCE)).await;
            assert_eq!(seen.expect("no lock").expect("a store"), ReplaySlot::UnderWay, "{waits}");
            if is_over {
                break;
            }
        }
        // It waited for a test of its connection, `BEGIN`, three statements, and `COMMIT`.
        assert!(waits > 6, "{waits}");
    }

    #[tokio::test]
    async fn concurrent_callers_of_a_silent_server_wait_once() {
        let (server, network) = (Postgres::start(), Network::new());
        let url = StoreUrl::new(&network.url_of(&server)).expect("an address");
        let store = SqlStore::at(&url).expect("a store");
        network.set(Way::Silent);
        let started = Instant::now();
        for outcome in futures_util::future::join_all((0..4).map(|_| store.revision())).await {
            let error = outcome.expect_err("nobody answers").to_string();
            assert!(error.contains("does not respond"), "{error}");
        }
        // One waits for 4 s.
        assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
        network.set(Way::Open);
        store.revision().await.expect("a store");
    }

    #[tokio::test]
    async fn server_certificate_is_verified() {
        let names = vec!["localhost".to_owned()];
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(names).expect("a key");
        let mut server = Postgres::start();
        server.serve_tls(&cert.pem(), &signing_key.serialize_pem());
        let folder = tempfile::tempdir().expect("a folder");
        let authority = folder.path().join("ca.pem");
        std::fs::write(&authority, cert.pem()).expect("a file");
        let store = |host: &str, query: &str| {
            let url = format!("{}?{query}", server.url_by_port(host));
            SqlStore::at(&StoreUrl::new(&url).expect("an address")).expect("a store")
        };
        let trusted = format!("sslmode=verify-full&sslrootcert={}", authority.display());
        store("localhost", &trusted).revision().await.expect("a store");
        for (host, query) in [("localhost", "sslmode=verify-full"), ("127.0.0.1", &trusted)] {
            let error = fails(&store(host, query), server.password()).await;
            assert!(error.contains("certificate"), "{host} {query}: {error}");
        }
        // Without TLS, this server rejects every client.
        fails(&store("localhost", "sslmode=disable"), server.password()).await;
    }

    #[tokio::test]
    async fn connection_errors_do_not_quote_the_password() {
        let server = Postgres::start();
        let store = |url: &str| SqlStore::at(&StoreUrl::new(url).expect("an address")).expect("a store");
        let error = fails(&store(&server.url_with_wrong_password()), "wrong").await;
        assert!(error.contains("password authentication failed for user \"gateway\""), "{error}");
        let elsewhere = server.url().replace("/postgres?", "/elsewhere?");
        let error = fails(&store(&elsewhere), server.password()).await;
        assert!(error.contains("database \"elsewhere\" does not exist"), "{error}");
        let nobody = format!("postgres://gateway:{}@127.0.0.1:9/postgres", server.password());
        fails(&store(&nobody), server.password()).await;
    }
}
