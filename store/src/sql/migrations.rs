//! Creates the tables, step by step, for both databases.

use gatewright_system::crash;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{AnyPool, Executor as _, Row as _, SqlSafeStr as _};

use super::dialect::Dialect;
use crate::traits::StoreError;

/// A step. Never changes once it is released.
struct SchemaStep {
    version: i64,
    what: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

/// All steps, by version.
const STEPS: &[SchemaStep] = &[
    SchemaStep {
        version: 1,
        what: "keys and usage",
        sqlite: include_str!("../../migrations/sqlite/0001_keys_and_usage.sql"),
        postgres: include_str!("../../migrations/postgres/0001_keys_and_usage.sql"),
    },
    SchemaStep {
        version: 2,
        what: "places of responses",
        sqlite: include_str!("../../migrations/sqlite/0002_places_of_responses.sql"),
        postgres: include_str!("../../migrations/postgres/0002_places_of_responses.sql"),
    },
    SchemaStep {
        version: 3,
        what: "video tasks",
        sqlite: include_str!("../../migrations/sqlite/0003_video_tasks.sql"),
        postgres: include_str!("../../migrations/postgres/0003_video_tasks.sql"),
    },
    SchemaStep {
        version: 4,
        what: "files",
        sqlite: include_str!("../../migrations/sqlite/0004_files.sql"),
        postgres: include_str!("../../migrations/postgres/0004_files.sql"),
    },
    SchemaStep {
        version: 5,
        what: "copies and replays",
        sqlite: include_str!("../../migrations/sqlite/0005_copies_and_replays.sql"),
        postgres: include_str!("../../migrations/postgres/0005_copies_and_replays.sql"),
    },
    SchemaStep {
        version: 6,
        what: "nodes",
        sqlite: include_str!("../../migrations/sqlite/0006_nodes.sql"),
        postgres: include_str!("../../migrations/postgres/0006_nodes.sql"),
    },
    SchemaStep {
        version: 7,
        what: "writers of usage",
        sqlite: include_str!("../../migrations/sqlite/0007_usage_writers.sql"),
        postgres: include_str!("../../migrations/postgres/0007_usage_writers.sql"),
    },
    SchemaStep {
        version: 8,
        what: "shared configuration",
        sqlite: include_str!("../../migrations/sqlite/0008_shared_configuration.sql"),
        postgres: include_str!("../../migrations/postgres/0008_shared_configuration.sql"),
    },
    SchemaStep {
        version: 9,
        what: "unpriced requests",
        sqlite: include_str!("../../migrations/sqlite/0009_unpriced_requests.sql"),
        postgres: include_str!("../../migrations/postgres/0009_unpriced_requests.sql"),
    },
    SchemaStep {
        version: 10,
        what: "failures and times of requests",
        sqlite: include_str!("../../migrations/sqlite/0010_failures_and_times.sql"),
        postgres: include_str!("../../migrations/postgres/0010_failures_and_times.sql"),
    },
    SchemaStep {
        version: 11,
        what: "files and batches of providers",
        sqlite: include_str!("../../migrations/sqlite/0011_provider_objects.sql"),
        postgres: include_str!("../../migrations/postgres/0011_provider_objects.sql"),
    },
];

/// The version of the last step.
pub(crate) const LATEST: i64 = STEPS[STEPS.len() - 1].version;

/// The lock that all gateways take in Postgres while they check and create the tables.
const LOCK: &str = "SELECT pg_advisory_xact_lock(4278257103)";

/// Migrates a database to this version, completely or not at all. Of several processes, one does so and the others
/// wait.
pub(super) async fn migrate(pool: &AnyPool, dialect: Dialect) -> Result<(), StoreError> {
    if is_current(pool).await {
        return Ok(());
    }
    make(pool, dialect, LATEST).await
}

/// Runs the missing steps up to a version.
async fn make(pool: &AnyPool, dialect: Dialect, version: i64) -> Result<(), StoreError> {
    let steps = STEPS.iter().filter(|step| step.version <= version).map(|step| {
        let sql = match dialect {
            Dialect::Sqlite => step.sqlite,
            Dialect::Postgres => step.postgres,
        };
        Migration::new(step.version, step.what.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    let mut migrator = Migrator::with_migrations(steps.collect());
    // sqlx's own lock does nothing in SQLite, and outlives a failure in Postgres.
    migrator.set_locking(false);
    crash::point();
    let mut making = pool.begin_with(dialect.begin_writing()).await?;
    if dialect == Dialect::Postgres {
        making.execute(LOCK).await?;
    }
    migrator.run_direct(None, &mut *making, false).await.map_err(|error| match error {
        MigrateError::VersionMissing(version) => StoreError::Refused(format!(
            "the database was created by a newer version of the gateway (migration {version}); use that version or a later one"
        )),
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
        other => StoreError::Failed(other.to_string()),
    })?;
    crash::point();
    making.commit().await?;
    crash::point();
    Ok(())
}

/// Connects to a database by a URL of `sqlx`, and creates the tables of an earlier version. The steps after it remain to be
/// run.
#[cfg(test)]
pub(crate) async fn of_version(url: &str, version: i64) -> AnyPool {
    sqlx::any::install_default_drivers();
    let dialect = if url.starts_with("sqlite:") { Dialect::Sqlite } else { Dialect::Postgres };
    let pool = AnyPool::connect(url).await.expect("a database");
    make(&pool, dialect, version).await.expect("its tables");
    pool
}

/// Whether a database has the tables of exactly this version. Checks without a lock: another process may be writing.
async fn is_current(pool: &AnyPool) -> bool {
    let made = sqlx::query("SELECT CAST(version AS BIGINT) FROM _sqlx_migrations ORDER BY 1").fetch_all(pool);
    made.await.is_ok_and(|made| {
        let made = made.iter().map(|step| step.try_get::<i64, _>(0).ok());
        made.eq(STEPS.iter().map(|step| Some(step.version)))
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn released_migrations_are_unchanged() {
        // To add a step, add its lines: sha384sum */*.sql >SHA384SUMS in that folder.
        let sums: Vec<&str> = include_str!("../../migrations/SHA384SUMS").lines().collect();
        assert_eq!(sums.len(), 2 * STEPS.len());
        for SchemaStep { version, sqlite, postgres, .. } in STEPS {
            for (folder, sql) in [("sqlite", sqlite), ("postgres", postgres)] {
                let kind = MigrationType::Simple;
                let step = Migration::new(*version, "".into(), kind, sql.into_sql_str(), false);
                let sum = step.checksum.iter().fold(String::new(), |mut sum, byte| {
                    _ = write!(sum, "{byte:02x}");
                    sum
                });
                let is_its = |line: &&str| line.contains(&format!(" {folder}/{version:04}_"));
                let released = sums.iter().copied().find(is_its).unwrap_or_default();
                assert!(released.starts_with(&sum), "{folder}, step {version} has changed");
            }
        }
    }
}
