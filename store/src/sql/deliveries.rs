//! Notifications in a database, using its clock.

use std::time::Duration;

use gatewright_system::clock::millis;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::{SqlStore, signed, stored, unsigned};
use crate::traits::{
    DELIVERY_RETENTION, Delivery, DeliveryOutcome, DeliveryStore, DueDelivery, Lease, MAX_DELIVERIES,
    MAX_LISTED, Notice, Status, StoreError, StoreFuture,
};

fn notice(row: &AnyRow) -> Result<Notice, StoreError> {
    Ok(Notice {
        id: row.try_get("id")?,
        task: row.try_get("task")?,
        owner: row.try_get("owner")?,
        url: row.try_get("url")?,
        body: row.try_get("body")?,
    })
}

fn attempts(row: &AnyRow) -> Result<u32, StoreError> {
    Ok(row.try_get::<i64, _>("attempts")?.try_into().unwrap_or(u32::MAX))
}

fn due(row: &AnyRow) -> Result<DueDelivery, StoreError> {
    let notice = notice(row)?;
    let lease = Lease { id: notice.id.clone(), number: row.try_get("lease")? };
    Ok(DueDelivery { notice, lease, attempts: attempts(row)? })
}

fn delivery(row: &AnyRow) -> Result<Delivery, StoreError> {
    let status: &str = row.try_get("status")?;
    let status = Status::of(status)
        .ok_or_else(|| StoreError::Failed(format!("a notification has the unknown state {status:?}")))?;
    Ok(Delivery {
        notice: notice(row)?,
        status,
        created: unsigned(row.try_get("created")?),
        attempts: attempts(row)?,
        problem: row.try_get("problem")?,
        due: (status == Status::Pending).then_some(unsigned(row.try_get("due")?) / 1000),
        ended: row.try_get::<Option<i64>, _>("ended")?.map(unsigned),
    })
}

/// A concurrent process finds that the notification is no longer due. The clock is read once, so that the
/// index is used.
const TAKE: &str = "
    UPDATE deliveries SET lease = lease + 1, due = {now} + $1 WHERE due <= (SELECT {now}) AND id IN (
        SELECT id FROM deliveries WHERE status = 'pending' AND due <= (SELECT {now})
        ORDER BY due LIMIT $2 {skip_locked})
    RETURNING *";

const NEXT: &str = "SELECT min(due) - {now} AS wait FROM deliveries WHERE status = 'pending'";

const NOTE: &str = "
    UPDATE deliveries SET status = $3, due = {now} + $4, problem = $5, attempts = attempts + 1,
        ended = CASE WHEN $3 = 'pending' THEN NULL ELSE {now} / 1000 END
    WHERE id = $1 AND lease = $2 AND status = 'pending'";

const AGAIN: &str = "
    UPDATE deliveries SET status = 'pending', due = {now}, attempts = 0, ended = NULL, lease = lease + 1
    WHERE id = $1";

/// The newest delivered and the newest given-up notifications are kept.
const FORGET: &str = "
    DELETE FROM deliveries WHERE ended < (SELECT {now} / 1000) - $1
    OR id IN (SELECT id FROM deliveries WHERE status = 'delivered' ORDER BY ended DESC LIMIT 1000000000 OFFSET $2)
    OR id IN (SELECT id FROM deliveries WHERE status = 'dead' ORDER BY ended DESC LIMIT 1000000000 OFFSET $2)";

impl DeliveryStore for SqlStore {
    fn due_deliveries(&self, last: Duration, most: usize) -> StoreFuture<'_, Vec<DueDelivery>> {
        stored(async move {
            let take = sqlx::query(AssertSqlSafe(self.dialect().statement(TAKE)));
            let take = take.bind(signed(millis(last))).bind(signed(most as u64));
            take.fetch_all(&self.connections().await?).await?.iter().map(due).collect()
        })
    }

    fn next_delivery(&self) -> StoreFuture<'_, Option<Duration>> {
        stored(async {
            let next = sqlx::query(AssertSqlSafe(self.dialect().statement(NEXT)));
            let next = next.fetch_one(&self.connections().await?).await?;
            let wait = next.try_get::<Option<i64>, _>("wait")?;
            Ok(wait.map(|wait| Duration::from_millis(unsigned(wait))))
        })
    }

    fn attempted<'s>(&'s self, lease: &'s Lease, attempted: &'s DeliveryOutcome) -> StoreFuture<'s, bool> {
        stored(async move {
            let (status, after, problem) = match attempted {
                DeliveryOutcome::Delivered => (Status::Delivered, Duration::ZERO, None),
                DeliveryOutcome::Again { after, problem } => (Status::Pending, *after, Some(problem)),
                DeliveryOutcome::Dead { problem } => (Status::Dead, Duration::ZERO, Some(problem)),
            };
            let note = sqlx::query(AssertSqlSafe(self.dialect().statement(NOTE)));
            let note = note.bind(&lease.id).bind(lease.number).bind(status.name());
            let note = note.bind(signed(millis(after))).bind(problem);
            Ok(note.execute(&self.connections().await?).await?.rows_affected() > 0)
        })
    }

    fn deliveries(&self, status: Option<Status>) -> StoreFuture<'_, Vec<Delivery>> {
        stored(async move {
            let list = sqlx::query(
                "SELECT * FROM deliveries WHERE $1 IS NULL OR status = $1 ORDER BY created DESC, id LIMIT $2",
            );
            let list = list.bind(status.map(Status::name)).bind(signed(MAX_LISTED as u64));
            list.fetch_all(&self.connections().await?).await?.iter().map(delivery).collect()
        })
    }

    fn redeliver<'s>(&'s self, id: &'s str) -> StoreFuture<'s, bool> {
        stored(async move {
            let again = sqlx::query(AssertSqlSafe(self.dialect().statement(AGAIN))).bind(id);
            Ok(again.execute(&self.connections().await?).await?.rows_affected() > 0)
        })
    }

    fn forget_deliveries(&self) -> StoreFuture<'_, ()> {
        stored(async move {
            let forget = sqlx::query(AssertSqlSafe(self.dialect().statement(FORGET)));
            let forget =
                forget.bind(signed(DELIVERY_RETENTION.as_secs())).bind(signed(MAX_DELIVERIES as u64));
            forget.execute(&self.connections().await?).await?;
            Ok(())
        })
    }

    #[cfg(test)]
    fn age_deliveries(&self, by: Duration) -> StoreFuture<'_, ()> {
        stored(async move {
            let age = sqlx::query("UPDATE deliveries SET due = due - $1, ended = ended - $2");
            let age = age.bind(signed(millis(by))).bind(signed(by.as_secs()));
            age.execute(&self.connections().await?).await?;
            Ok(())
        })
    }
}
