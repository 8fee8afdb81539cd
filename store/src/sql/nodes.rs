//! The gateways that use a database.

use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::{SqlStore, signed, stored, unsigned};
use crate::traits::{MAX_LISTED, NodeRecord, NodeStore, StoreError, StoreFuture};

/// Separator of two addresses.
const BETWEEN: &str = "\n";

fn node(row: &AnyRow) -> Result<NodeRecord, StoreError> {
    let addresses: &str = row.try_get("addresses")?;
    Ok(NodeRecord {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        version: row.try_get("version")?,
        addresses: addresses.split_terminator(BETWEEN).map(str::to_owned).collect(),
        started: unsigned(row.try_get("started")?),
        seen: unsigned(row.try_get("seen")?),
        in_flight: unsigned(row.try_get("in_flight")?),
        leases: unsigned(row.try_get("leases")?),
        config: row.try_get::<Option<i64>, _>("config")?.map(unsigned),
    })
}

impl NodeStore for SqlStore {
    fn report_node<'s>(&'s self, node: &'s NodeRecord, seen_before: u64) -> StoreFuture<'s, ()> {
        stored(async move {
            let connections = self.connections().await?;
            let report = sqlx::query(
                "INSERT INTO nodes (id, name, version, addresses, started, seen, in_flight, leases, config)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                 ON CONFLICT (id) DO UPDATE SET seen = excluded.seen, in_flight = excluded.in_flight,
                    leases = excluded.leases, config = excluded.config",
            );
            let report = report.bind(&node.id).bind(&node.name).bind(&node.version);
            let report = report.bind(node.addresses.join(BETWEEN)).bind(signed(node.started));
            let report =
                report.bind(signed(node.seen)).bind(signed(node.in_flight)).bind(signed(node.leases));
            let report = report.bind(node.config.map(signed));
            report.execute(&connections).await?;
            let forget = sqlx::query("DELETE FROM nodes WHERE seen < $1").bind(signed(seen_before));
            forget.execute(&connections).await?;
            Ok(())
        })
    }

    fn nodes(&self, seen_since: u64) -> StoreFuture<'_, Vec<NodeRecord>> {
        stored(async move {
            let list = sqlx::query("SELECT * FROM nodes WHERE seen >= $1 ORDER BY name, id LIMIT $2");
            let list = list.bind(signed(seen_since)).bind(signed(MAX_LISTED as u64));
            list.fetch_all(&self.connections().await?).await?.iter().map(node).collect()
        })
    }

    fn remove_node<'s>(&'s self, id: &'s str) -> StoreFuture<'s, ()> {
        stored(async move {
            let remove = sqlx::query("DELETE FROM nodes WHERE id = $1").bind(id);
            remove.execute(&self.connections().await?).await?;
            Ok(())
        })
    }
}
