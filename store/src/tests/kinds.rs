//! The stores that the suite runs over.

use std::any::Any;
use std::sync::Arc;

use gatewright_test_stores::Postgres;

use crate::{DurableStore, SqlStore, StoreUrl};

/// A store that two processes have opened.
pub(super) struct Shared {
    pub(super) one: Arc<dyn DurableStore>,
    pub(super) other: Arc<dyn DurableStore>,
    /// Removed after the test.
    _place: Box<dyn Any>,
}

/// If nothing is shared, both are the same.
pub(super) fn memory() -> Shared {
    let one: Arc<dyn DurableStore> = Arc::new(SqlStore::in_memory());
    Shared { other: Arc::clone(&one), one, _place: Box::new(()) }
}

pub(super) fn sqlite() -> Shared {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || Arc::new(SqlStore::in_file(&folder.path().join("a.db")).expect("a database"));
    Shared { one: open(), other: open(), _place: Box::new(folder) }
}

pub(super) fn postgres() -> Shared {
    let server = Postgres::start();
    Shared { one: at(&server), other: at(&server), _place: Box::new(server) }
}

/// A store on a server.
pub(super) fn at(server: &Postgres) -> Arc<SqlStore> {
    let url = StoreUrl::new(&server.url()).expect("an address");
    Arc::new(SqlStore::at(&url).expect("a store"))
}

/// Tests for every store: functions that take a [`Shared`] store.
macro_rules! in_every_store {
    ($($test:ident)*) => {
        mod memory {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::tests::kinds::memory()).await;
            })*
        }

        mod sqlite {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::tests::kinds::sqlite()).await;
            })*
        }

        mod postgres {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::tests::kinds::postgres()).await;
            })*
        }
    };
}
