//! The networks between a node and the services it shares with others: one to the database, and one to the rest.

use gatewright_test_stores::{Network, Postgres, Redis, Way};

/// See the module.
pub(crate) struct Networks {
    store: Network,
    others: Network,
}

/// Where a node finds the services it shares with others.
pub(crate) struct Shared {
    /// The URL of the database.
    pub(crate) store: String,
    /// The URL of the counters.
    pub(crate) counters: String,
    /// The port of the bucket.
    pub(crate) bucket: u16,
}

impl Networks {
    pub(crate) fn new() -> Self {
        Self { store: Network::new(), others: Network::new() }
    }

    /// The addresses behind them.
    pub(crate) async fn lead_to(&self, store: &Postgres, counters: &Redis, bucket: u16) -> Shared {
        Shared {
            store: self.store.url_of(store),
            counters: counters.url_at(self.others.port_of(counters.port()).await),
            bucket: self.others.port_of(bucket).await,
        }
    }

    /// Cuts the one to the database, or both.
    pub(crate) fn cut(&self, whole: bool, silent: bool) {
        let way = if silent { Way::Silent } else { Way::Broken };
        self.store.set(way);
        if whole {
            self.others.set(way);
        }
    }

    pub(crate) fn mend(&self) {
        self.store.set(Way::Open);
        self.others.set(Way::Open);
    }
}
