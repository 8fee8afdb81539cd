//! Reports to the store that this gateway is running, and its current load, for the other gateways of the store.

use std::sync::{Arc, Weak};
use std::time::Duration;

use gatewright_store::{DurableStore, NODE_KNOWN_FOR_S, NodeRecord};
use gatewright_system::clock::unix_seconds;
use gatewright_system::{random_bytes, supervise};
use tokio_util::task::AbortOnDropHandle;

use crate::app::App;
use crate::shared::Shared;

/// Interval between reports.
const PAUSE: Duration = Duration::from_secs(5);
/// How long the shutdown waits for the store.
const PATIENCE: Duration = Duration::from_secs(2);
/// Name if the machine has none.
const NAMELESS: &str = "gateway";

/// A listed gateway, until [`end`](Self::end).
pub(crate) struct RegisteredNode {
    id: String,
    store: Arc<dyn DurableStore>,
    _heartbeat: AbortOnDropHandle<()>,
}

impl RegisteredNode {
    /// `addresses`: the base URLs that it listens on. Needs a Tokio runtime.
    pub(crate) fn start(app: &Arc<App>, addresses: Vec<String>) -> Self {
        let random = u64::from_le_bytes(*random_bytes().first_chunk().expect("32 bytes"));
        let node = NodeRecord {
            id: format!("node_{random:016x}"),
            name: app.config.name.clone().unwrap_or_else(name_of_machine),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            addresses,
            started: unix_seconds(),
            ..NodeRecord::default()
        };
        let (id, store, app) = (node.id.clone(), Arc::clone(&app.storage.store), Arc::downgrade(app));
        let heartbeat =
            supervise("list of gateways", PAUSE, move || keep_registered(Weak::clone(&app), node.clone()));
        Self { id, store, _heartbeat: AbortOnDropHandle::new(heartbeat) }
    }

    /// The gateway ends.
    pub(crate) async fn end(self) {
        let Self { id, store, _heartbeat: heartbeat } = self;
        drop(heartbeat);
        match tokio::time::timeout(PATIENCE, store.remove_node(&id)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!("{error}: the gateway stays listed for a while"),
            Err(_) => tracing::debug!("the store does not respond: the gateway stays listed for a while"),
        }
    }
}

async fn keep_registered(app: Weak<App>, mut node: NodeRecord) {
    while let Some(app) = app.upgrade() {
        node.seen = unix_seconds();
        (node.in_flight, node.leases) = (app.telemetry.metrics.in_flight.now(), app.task_runner.under_way());
        node.config = app.live.shared.as_ref().and_then(Shared::number);
        if let Err(error) =
            app.storage.store.report_node(&node, node.seen.saturating_sub(NODE_KNOWN_FOR_S)).await
        {
            // Others that need the store log that it is away.
            tracing::debug!("{error}: this gateway is not listed");
        }
        drop(app);
        tokio::time::sleep(PAUSE.mul_f64(rand::random_range(0.8..1.0))).await;
    }
}

/// The name of the machine or the container.
fn name_of_machine() -> String {
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let hostname = hostname.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    let name: String = hostname.trim().chars().take(64).collect();
    if name.is_empty() { NAMELESS.to_owned() } else { name }
}
