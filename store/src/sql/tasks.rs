//! Video tasks in a database, using its clock.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use gatewright_system::clock::millis;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::{SqlStore, signed, stored, unsigned};
use crate::traits::{
    KNOWN_FOR, Lease, MAX_ENDED, MAX_LISTED, MAX_TASKS, Notice, Quota, QuotaExceeded, ResumedTask,
    StoreError, StoreFuture, Task, TaskState, TaskStore, read, written,
};

fn task(row: &AnyRow) -> Result<Task, StoreError> {
    let text = |name| row.try_get::<&str, _>(name).map(Arc::<str>::from);
    Ok(Task {
        id: row.try_get("id")?,
        owner: text("owner")?,
        created: unsigned(row.try_get("created")?),
        model: text("model")?,
        state: read(row.try_get("status")?, row.try_get("outcome")?).map_err(StoreError::Failed)?,
    })
}

fn listed(row: &AnyRow) -> Result<(Task, Option<u64>), StoreError> {
    Ok((task(row)?, row.try_get::<Option<i64>, _>("ended")?.map(unsigned)))
}

fn resumed(row: &AnyRow) -> Result<ResumedTask, StoreError> {
    let task = task(row)?;
    let lease = Lease { id: task.id.clone(), number: row.try_get("lease")? };
    Ok(ResumedTask { task, lease, now: unsigned(row.try_get("now")?), task_payload: row.try_get("errand")? })
}

const ADD: &str = "
    INSERT INTO tasks (id, owner, created, model, status, outcome, announced, lease, due)
    VALUES ($1, $2, $3, $4, $5, $6, $7, 1, {now} + $8)";

const END: &str = "
    UPDATE tasks SET status = $3, outcome = $4, errand = NULL, ended = {now} / 1000
    WHERE id = $1 AND lease = $2 AND ended IS NULL";

const ADD_NOTICE: &str = "
    INSERT INTO deliveries (id, task, owner, url, body, created, status, attempts, lease, due)
    VALUES ($1, $2, $3, $4, $5, {now} / 1000, 'pending', 0, 0, {now})";

const RENEW: &str = "UPDATE tasks SET due = {now} + $1 WHERE ended IS NULL AND ";

/// A concurrent process finds that the task is no longer due. The clock is read once, so that the index is
/// used.
const RESUME: &str = "
    UPDATE tasks SET lease = lease + 1, due = {now} + $1 WHERE due <= (SELECT {now}) AND id IN (
        SELECT id FROM tasks WHERE ended IS NULL AND errand IS NOT NULL AND due <= (SELECT {now})
        ORDER BY due LIMIT $2 {skip_locked})
    RETURNING *, {now} AS now";

const FORGET_UNACCEPTED: &str =
    "DELETE FROM tasks WHERE ended IS NULL AND errand IS NULL AND due <= (SELECT {now})";

const FORGET_ENDED: &str = "
    DELETE FROM tasks WHERE ended < (SELECT {now} / 1000) - $1 OR id IN (
        SELECT id FROM tasks WHERE ended IS NOT NULL ORDER BY ended DESC LIMIT 1000000000 OFFSET $2)";

/// A key's ended tasks are counted from the newest.
const GIVE_WAY: &str = "
    DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE owner = $1 AND ended IS NOT NULL
        ORDER BY ended DESC LIMIT 1000000000 OFFSET $2)";

/// Counting a key's ended tasks gets slower the more there are. So only one of many submissions evicts old ones: the limit
/// is exceeded by about this fraction.
const PART: usize = 16;

/// One out of how many submissions evicts old tasks.
fn one_in(most: usize) -> u32 {
    u32::try_from(most / PART).unwrap_or(u32::MAX).max(1)
}

/// Maximum number of leases renewed by one statement.
const MAX_RENEWED: usize = 100;

impl SqlStore {
    /// Maximum number of ended tasks.
    fn max_ended(&self) -> usize {
        if self.is_in_memory() { MAX_TASKS } else { MAX_ENDED }
    }

    /// Returns the leases that are lost.
    async fn renew_some(&self, leases: &[&Lease], lasts: Duration) -> Result<Vec<Lease>, StoreError> {
        let held = (0..leases.len()).map(|at| format!("(id = ${} AND lease = ${})", 2 * at + 2, 2 * at + 3));
        let held = held.collect::<Vec<_>>().join(" OR ");
        let renew = format!("{}({held}) RETURNING id", self.dialect().statement(RENEW));
        let mut renew = sqlx::query(AssertSqlSafe(renew)).bind(signed(millis(lasts)));
        for lease in leases {
            renew = renew.bind(lease.id.as_str()).bind(lease.number);
        }
        let renewed = stored(async { Ok(renew.fetch_all(&self.connections().await?).await?) }).await?;
        let renewed: HashSet<&str> = renewed.iter().map(|row| row.try_get("id")).collect::<Result<_, _>>()?;
        let lost = leases.iter().filter(|lease| !renewed.contains(lease.id.as_str()));
        Ok(lost.map(|lease| (*lease).clone()).collect())
    }
}

impl TaskStore for SqlStore {
    fn add_task<'s>(
        &'s self,
        task: &'s Task,
        announced: bool,
        most: Quota,
        lasts: Duration,
    ) -> StoreFuture<'s, Result<Lease, QuotaExceeded>> {
        stored(async move {
            let mut writing = self.begin_writing().await?;
            let counts = sqlx::query(
                "SELECT count(*) AS of_all, count(CASE WHEN owner = $1 THEN 1 END) AS of_key,
                     count(CASE WHEN announced THEN 1 END)
                     + (SELECT count(*) FROM deliveries WHERE status = 'pending') AS notices,
                     count(CASE WHEN announced AND owner = $1 THEN 1 END)
                     + (SELECT count(*) FROM deliveries WHERE status = 'pending' AND owner = $1) AS own_notices
                 FROM tasks WHERE ended IS NULL",
            );
            let counts = counts.bind(&*task.owner).fetch_one(&mut *writing).await?;
            let count =
                |name| counts.try_get::<i64, _>(name).map(|count| count.try_into().unwrap_or(usize::MAX));
            let full = if count("of_key")? >= most.of_key {
                Some(QuotaExceeded::OfKey(most.of_key))
            } else if count("of_all")? >= most.of_all {
                Some(QuotaExceeded::OfAll(most.of_all))
            } else if announced && count("own_notices")? >= most.notices_of_key {
                Some(QuotaExceeded::NoticesOfKey(most.notices_of_key))
            } else {
                (announced && count("notices")? >= most.notices)
                    .then_some(QuotaExceeded::Notices(most.notices))
            };
            if let Some(full) = full {
                return Ok(Err(full));
            }
            let most_ended = most.ended_of_key(self.max_ended());
            if rand::random_ratio(1, one_in(most_ended)) {
                let give_way = sqlx::query(GIVE_WAY).bind(&*task.owner).bind(signed(most_ended as u64));
                give_way.execute(&mut *writing).await?;
            }
            let (status, outcome) = written(&task.state);
            let add = sqlx::query(AssertSqlSafe(self.dialect().statement(ADD)));
            let add = add.bind(&*task.id).bind(&*task.owner).bind(signed(task.created)).bind(&*task.model);
            let add = add.bind(status).bind(outcome).bind(announced).bind(signed(millis(lasts)));
            add.execute(&mut *writing).await?;
            self.commit(writing).await?;
            Ok(Ok(Lease { id: task.id.clone(), number: 1 }))
        })
    }

    fn accept_task<'s>(
        &'s self,
        lease: &'s Lease,
        state: &'s TaskState,
        task_payload: &'s str,
    ) -> StoreFuture<'s, bool> {
        stored(async move {
            let accept = sqlx::query(
                "UPDATE tasks SET status = $3, errand = $4 WHERE id = $1 AND lease = $2 AND ended IS NULL
                     AND (errand IS NULL OR errand = $4 AND status = $3)",
            );
            let accept = accept.bind(&lease.id).bind(lease.number).bind(written(state).0).bind(task_payload);
            Ok(accept.execute(&self.connections().await?).await?.rows_affected() > 0)
        })
    }

    fn drop_task<'s>(&'s self, lease: &'s Lease) -> StoreFuture<'s, ()> {
        stored(async move {
            let drop = sqlx::query("DELETE FROM tasks WHERE id = $1 AND lease = $2 AND ended IS NULL");
            drop.bind(&lease.id).bind(lease.number).execute(&self.connections().await?).await?;
            Ok(())
        })
    }

    fn task<'s>(&'s self, owner: &'s str, id: &'s str) -> StoreFuture<'s, Option<Task>> {
        stored(async move {
            let found = sqlx::query("SELECT * FROM tasks WHERE id = $1 AND owner = $2").bind(id).bind(owner);
            found.fetch_optional(&self.connections().await?).await?.as_ref().map(task).transpose()
        })
    }

    fn tasks<'s>(&'s self, status: Option<&'s str>) -> StoreFuture<'s, Vec<(Task, Option<u64>)>> {
        stored(async move {
            // Without the payload, which may be as large as a request.
            let list = sqlx::query(
                "SELECT id, owner, created, model, status, outcome, ended FROM tasks
                 WHERE ($1 IS NULL OR status = $1) AND (errand IS NOT NULL OR ended IS NOT NULL)
                 ORDER BY created DESC, id LIMIT $2",
            );
            let list = list.bind(status).bind(signed(MAX_LISTED as u64));
            list.fetch_all(&self.connections().await?).await?.iter().map(listed).collect()
        })
    }

    fn advance_task<'s>(&'s self, lease: &'s Lease, state: &'s TaskState) -> StoreFuture<'s, bool> {
        stored(async move {
            let advance = sqlx::query(
                "UPDATE tasks SET status = $3 WHERE id = $1 AND lease = $2 AND ended IS NULL
                     AND status IN ('pending', $3)",
            );
            let advance = advance.bind(&lease.id).bind(lease.number).bind(written(state).0);
            Ok(advance.execute(&self.connections().await?).await?.rows_affected() > 0)
        })
    }

    fn end_task<'s>(
        &'s self,
        lease: &'s Lease,
        state: &'s TaskState,
        notice: Option<&'s Notice>,
    ) -> StoreFuture<'s, bool> {
        stored(async move {
            let mut writing = self.begin_writing().await?;
            let (status, outcome) = written(state);
            let end = sqlx::query(AssertSqlSafe(self.dialect().statement(END)));
            let end = end.bind(&lease.id).bind(lease.number).bind(status).bind(outcome);
            let ended = end.execute(&mut *writing).await?.rows_affected() > 0;
            if let Some(Notice { id, task, owner, url, body }) = notice.filter(|_| ended) {
                let add = sqlx::query(AssertSqlSafe(self.dialect().statement(ADD_NOTICE)));
                add.bind(id).bind(task).bind(owner).bind(url).bind(body).execute(&mut *writing).await?;
            }
            self.commit(writing).await?;
            Ok(ended)
        })
    }

    fn renew_leases<'s>(&'s self, leases: &'s [Lease], lasts: Duration) -> StoreFuture<'s, Vec<Lease>> {
        Box::pin(async move {
            let mut sorted: Vec<&Lease> = leases.iter().collect();
            sorted.sort_unstable_by(|one, other| one.id.cmp(&other.id));
            let mut lost = Vec::new();
            for some in sorted.chunks(MAX_RENEWED) {
                lost.extend(self.renew_some(some, lasts).await?);
            }
            Ok(lost)
        })
    }

    fn resume_tasks(&self, last: Duration, most: usize) -> StoreFuture<'_, Vec<ResumedTask>> {
        stored(async move {
            let resume = sqlx::query(AssertSqlSafe(self.dialect().statement(RESUME)));
            let resume = resume.bind(signed(millis(last))).bind(signed(most as u64));
            let rows = resume.fetch_all(&self.connections().await?).await?;
            // One that can't be read doesn't block the others.
            let read = rows.iter().map(resumed);
            Ok(read.filter_map(|task| task.inspect_err(|error| tracing::error!("{error}")).ok()).collect())
        })
    }

    fn forget_tasks(&self) -> StoreFuture<'_, ()> {
        stored(async move {
            let database = self.connections().await?;
            let unaccepted = self.dialect().statement(FORGET_UNACCEPTED);
            sqlx::query(AssertSqlSafe(unaccepted)).execute(&database).await?;
            let ended = sqlx::query(AssertSqlSafe(self.dialect().statement(FORGET_ENDED)));
            let ended = ended.bind(signed(KNOWN_FOR.as_secs())).bind(signed(self.max_ended() as u64));
            ended.execute(&database).await?;
            Ok(())
        })
    }

    #[cfg(test)]
    fn age_tasks(&self, by: Duration) -> StoreFuture<'_, ()> {
        stored(async move {
            let age = sqlx::query("UPDATE tasks SET due = due - $1, ended = ended - $2");
            let age = age.bind(signed(millis(by))).bind(signed(by.as_secs()));
            age.execute(&self.connections().await?).await?;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleanup_frequency_falls_with_the_number_of_task_slots() {
        assert_eq!([0, 15, 31, 32, 1_600].map(one_in), [1, 1, 1, 2, 100]);
    }
}
