//! Which database it is: what statements do not have in common.

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Begins to change several rows. In SQLite, a transaction that reads first cannot become one that writes while another
    /// writes.
    pub(super) fn begin_writing(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// The clock of the database, in milliseconds since 1970.
    pub(super) fn now(self) -> &'static str {
        match self {
            Self::Sqlite => "CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)",
            Self::Postgres => "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
        }
    }
}
