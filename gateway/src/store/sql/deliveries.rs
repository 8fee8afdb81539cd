//! Notifications in a database.

use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::dialect::Dialect;
use super::{SqlStore, signed, stored, unsigned};
use crate::store::durable::{
    Attempted, Delivery, DeliveryStore, Due, LONGEST_LIST, Lease, MOST_TOLD, Notice, Status, StoreError,
    Stored,
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

fn due(row: &AnyRow) -> Result<Due, StoreError> {
    let notice = notice(row)?;
    let lease = Lease { id: notice.id.clone(), number: row.try_get("lease")? };
    Ok(Due { notice, lease, attempts: attempts(row)? })
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

/// Whoever else is as far finds a notification that is no longer due.
macro_rules! take {
    ($locking:literal) => {
        sqlx::query(concat!(
            "UPDATE deliveries SET lease = lease + 1, due = $2 WHERE due <= $1 AND id IN (
                 SELECT id FROM deliveries WHERE status = 'pending' AND due <= $1 ORDER BY due LIMIT $3",
            $locking,
            ") RETURNING *"
        ))
    };
}

impl DeliveryStore for SqlStore {
    fn due_deliveries(&self, now: u64, due_again: u64, most: usize) -> Stored<'_, Vec<Due>> {
        stored(async move {
            let take = match self.dialect() {
                Dialect::Sqlite => take!(""),
                Dialect::Postgres => take!(" FOR UPDATE SKIP LOCKED"),
            };
            let take = take.bind(signed(now)).bind(signed(due_again)).bind(signed(most as u64));
            take.fetch_all(&self.connections().await?).await?.iter().map(due).collect()
        })
    }

    fn next_delivery(&self) -> Stored<'_, Option<u64>> {
        stored(async {
            let next = sqlx::query("SELECT min(due) AS due FROM deliveries WHERE status = 'pending'");
            let next = next.fetch_one(&self.connections().await?).await?;
            Ok(next.try_get::<Option<i64>, _>("due")?.map(unsigned))
        })
    }

    fn attempted<'s>(&'s self, lease: &'s Lease, attempted: &'s Attempted, now: u64) -> Stored<'s, bool> {
        stored(async move {
            let (status, due, problem) = match attempted {
                Attempted::Delivered => (Status::Delivered, now, None),
                Attempted::Again { due, problem } => (Status::Pending, *due, Some(problem)),
                Attempted::Dead { problem } => (Status::Dead, now, Some(problem)),
            };
            let note = sqlx::query(
                "UPDATE deliveries SET status = $3, due = $4, problem = $5, ended = $6, attempts = attempts + 1
                 WHERE id = $1 AND lease = $2 AND status = 'pending'",
            );
            let note =
                note.bind(&lease.id).bind(lease.number).bind(status.name()).bind(signed(due)).bind(problem);
            let note = note.bind((status != Status::Pending).then_some(signed(now / 1000)));
            Ok(note.execute(&self.connections().await?).await?.rows_affected() > 0)
        })
    }

    fn deliveries(&self, status: Option<Status>) -> Stored<'_, Vec<Delivery>> {
        stored(async move {
            let list = sqlx::query(
                "SELECT * FROM deliveries WHERE $1 IS NULL OR status = $1 ORDER BY created DESC, id LIMIT $2",
            );
            let list = list.bind(status.map(Status::name)).bind(signed(LONGEST_LIST as u64));
            list.fetch_all(&self.connections().await?).await?.iter().map(delivery).collect()
        })
    }

    fn redeliver<'s>(&'s self, id: &'s str, now: u64) -> Stored<'s, bool> {
        stored(async move {
            let again = sqlx::query(
                "UPDATE deliveries SET status = 'pending', due = $2, attempts = 0, ended = NULL, lease = lease + 1
                 WHERE id = $1",
            );
            let again = again.bind(id).bind(signed(now));
            Ok(again.execute(&self.connections().await?).await?.rows_affected() > 0)
        })
    }

    fn forget_deliveries(&self, ended_before: u64) -> Stored<'_, ()> {
        stored(async move {
            let forget = sqlx::query(
                "DELETE FROM deliveries WHERE ended < $1
                 OR id IN (SELECT id FROM deliveries WHERE status = 'delivered'
                     ORDER BY ended DESC LIMIT 1000000000 OFFSET $2)
                 OR id IN (SELECT id FROM deliveries WHERE status = 'dead'
                     ORDER BY ended DESC LIMIT 1000000000 OFFSET $2)",
            );
            let forget = forget.bind(signed(ended_before / 1000)).bind(signed(MOST_TOLD as u64));
            forget.execute(&self.connections().await?).await?;
            Ok(())
        })
    }
}
