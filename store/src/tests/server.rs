//! What a database server does for several gateways: it notifies them of changes, and skips rows that another
//! gateway has locked.

use std::sync::Arc;
use std::time::Duration;

use gatewright_test_stores::Postgres;
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Executor as _};

use super::kinds::at;
use super::tasks::{LEASE, accepted, age, notice};
use crate::keys::{Digest, NewKey};
use crate::traits::{KeyRecord, NewConfig};
use crate::{DurableStore, TaskState};

/// Long enough for a busy machine; no passing test reaches it.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a test waits to see that no notification arrives.
const QUIET: Duration = Duration::from_millis(300);

async fn connection(server: &Postgres) -> PgConnection {
    PgConnection::connect(&server.url()).await.expect("a connection")
}

async fn comes(change: impl Future<Output = ()>) {
    tokio::time::timeout(PATIENCE, change).await.expect("it is notified");
}

async fn stays_away(change: impl Future<Output = ()>) {
    assert!(tokio::time::timeout(QUIET, change).await.is_err(), "nothing has changed");
}

/// Closes the listening connections, as a failing network would.
async fn interrupt(server: &Postgres) {
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ILIKE 'LISTEN%'";
    let ended = connection(server).await.execute(end).await.expect("ended");
    assert!(ended.rows_affected() > 0, "a listener is connected");
}

mod postgres {
    use super::*;

    #[tokio::test]
    async fn key_and_config_changes_are_notified_separately() {
        let server = Postgres::start();
        let (one, other): (Arc<dyn DurableStore>, Arc<dyn DurableStore>) = (at(&server), at(&server));
        let add = async |name: &str, byte| {
            let key = NewKey::new(name).issue(1_790_000_000);
            let record = KeyRecord { key, digest: Digest([byte; 32]), old: None };
            one.add_key(record).await.expect("a store").expect("added");
        };
        one.revision().await.expect("tables");
        // Earlier changes are reported to a new waiter.
        comes(other.keys_changed()).await;
        comes(other.config_changed()).await;
        stays_away(other.keys_changed()).await;
        stays_away(other.config_changed()).await;
        add("one", 1).await;
        comes(other.keys_changed()).await;
        stays_away(other.config_changed()).await;
        let document = NewConfig { made: 7, author: "ada", repeats: None, document: "x" };
        one.add_config(document, None).await.expect("a store");
        comes(other.config_changed()).await;
        stays_away(other.keys_changed()).await;
        // After a lost connection, anything may have changed.
        interrupt(&server).await;
        comes(other.keys_changed()).await;
        comes(other.config_changed()).await;
        add("two", 2).await;
        comes(other.keys_changed()).await;
    }

    #[tokio::test]
    async fn locked_rows_are_skipped() {
        let server = Postgres::start();
        let store: Arc<dyn DurableStore> = at(&server);
        for id in ["a", "b"] {
            accepted(&*store, id).await;
            let ended = accepted(&*store, &format!("ended_{id}")).await;
            let notice = notice(&format!("m_{id}"));
            assert!(store.end_task(&ended, &TaskState::failed("x"), Some(&notice)).await.expect("an answer"));
        }
        age(&*store, LEASE).await;
        let mut locking = connection(&server).await;
        let mut locked = locking.begin().await.expect("a transaction");
        for lock in [
            "SELECT 1 FROM tasks WHERE id = 'a' FOR UPDATE",
            "SELECT 1 FROM deliveries WHERE id = 'm_a' FOR UPDATE",
        ] {
            locked.execute(lock).await.expect("locked");
        }
        let resumed = tokio::time::timeout(PATIENCE, store.resume_tasks(LEASE, 10)).await.expect("at once");
        let resumed: Vec<_> =
            resumed.expect("an answer").into_iter().map(|resumed| resumed.task.id).collect();
        assert_eq!(resumed, ["b"]);
        let due = tokio::time::timeout(PATIENCE, store.due_deliveries(LEASE, 10)).await.expect("at once");
        let due: Vec<_> = due.expect("an answer").into_iter().map(|due| due.notice.id).collect();
        assert_eq!(due, ["m_b"]);
        locked.rollback().await.expect("unlocked");
        let left = store.resume_tasks(LEASE, 10).await.expect("an answer");
        assert_eq!(left.into_iter().map(|resumed| resumed.task.id).collect::<Vec<_>>(), ["a"]);
    }
}
