//! The differences between the databases' statements.

use gatewright_system::clock;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Begins to change several rows. In SQLite, a transaction that reads first can't start to write while another one
    /// writes.
    pub(super) fn begin_writing(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// A statement in its dialect, with its placeholders filled in: `{now}`, its clock, and `{skip_locked}`, after rows that
    /// are read to be changed: concurrent statements skip those rows.
    pub(super) fn statement(self, statement: &str) -> String {
        statement.replace("{now}", &self.now()).replace("{skip_locked}", self.skip_locked())
    }

    fn skip_locked(self) -> &'static str {
        match self {
            // No other connection changes anything in the meantime.
            Self::Sqlite => "",
            Self::Postgres => "FOR UPDATE SKIP LOCKED",
        }
    }

    /// The clock of the database, in milliseconds since 1970.
    fn now(self) -> String {
        match self {
            Self::Sqlite => {
                let now = "CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)";
                // Its clock is the one of the gateway's machine.
                match clock::wrong_by() {
                    0 => now.to_owned(),
                    by => format!("({now} + ({by}))"),
                }
            }
            Self::Postgres => "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)".to_owned(),
        }
    }
}
