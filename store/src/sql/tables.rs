//! The tables and their columns, for moving their contents. Tables specific to one store are omitted.

/// A table. Columns whose values the database assigns itself are omitted.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [(&'static str, ColumnKind)],
    /// Sort order of its rows.
    pub(super) order: &'static str,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Text,
    Count,
    Bytes,
    Truth,
}

use self::ColumnKind::{Bytes, Count, Text, Truth};

pub(super) const TABLES: &[Table] = &[
    Table {
        name: "keys",
        columns: &[
            ("id", Text),
            ("name", Text),
            ("digest", Bytes),
            ("old_digest", Bytes),
            ("old_until", Count),
            ("scopes", Text),
            ("limits", Text),
            ("created", Count),
            ("expires", Count),
            ("rotated", Count),
            ("revoked", Count),
        ],
        // Lists show keys created in the same second in order of creation.
        order: "created, rowid",
    },
    Table {
        name: "usage",
        columns: &[
            ("day", Text),
            ("key", Text),
            ("model", Text),
            ("upstream", Text),
            ("requests", Count),
            ("complete", Count),
            ("estimated", Count),
            ("input_tokens", Count),
            ("cached_tokens", Count),
            ("cache_write_tokens", Count),
            ("output_tokens", Count),
            ("reasoning_tokens", Count),
            ("cost", Count),
            ("unpriced", Count),
            ("failed", Count),
            ("timed", Count),
            ("first_byte_ms", Count),
            ("latency_ms", Count),
        ],
        order: "day, key, model, upstream",
    },
    // Rows that are also in a journal next to the store are not counted twice in another store either.
    Table { name: "usage_writers", columns: &[("id", Text), ("batch", Count), ("seen", Count)], order: "id" },
    Table {
        name: "places",
        columns: &[("id", Text), ("owner", Text), ("upstream", Text), ("key", Count), ("model", Text)],
        order: "number",
    },
    Table {
        name: "tasks",
        columns: &[
            ("id", Text),
            ("owner", Text),
            ("created", Count),
            ("model", Text),
            ("status", Text),
            ("outcome", Text),
            ("errand", Text),
            ("announced", Truth),
            ("lease", Count),
            ("due", Count),
            ("ended", Count),
        ],
        order: "created, id",
    },
    Table {
        name: "deliveries",
        columns: &[
            ("id", Text),
            ("task", Text),
            ("owner", Text),
            ("url", Text),
            ("body", Text),
            ("created", Count),
            ("status", Text),
            ("attempts", Count),
            ("problem", Text),
            ("lease", Count),
            ("due", Count),
            ("ended", Count),
        ],
        order: "created, id",
    },
    Table {
        name: "files",
        columns: &[("name", Text), ("owner", Text), ("kind", Text), ("bytes", Count), ("expires", Count)],
        order: "expires, name",
    },
    Table {
        name: "copies",
        columns: &[
            ("owner", Text),
            ("id", Text),
            ("stamp", Count),
            ("kept", Count),
            ("bytes", Count),
            ("content", Bytes),
        ],
        order: "kept, owner, id",
    },
    Table {
        name: "replays",
        columns: &[
            ("slot", Text),
            ("operation", Text),
            ("owner", Text),
            ("fingerprint", Bytes),
            ("lease", Count),
            ("due", Count),
            ("bytes", Count),
            ("answer", Bytes),
        ],
        order: "due, slot",
    },
    Table {
        name: "objects",
        columns: &[
            ("owner", Text),
            ("id", Text),
            ("kind", Text),
            ("purpose", Text),
            ("content", Bytes),
            ("expires", Count),
            ("lease", Count),
            ("due", Count),
        ],
        order: "number",
    },
    Table {
        name: "configs",
        columns: &[
            ("revision", Count),
            ("made", Count),
            ("author", Text),
            ("repeats", Count),
            ("document", Text),
        ],
        order: "revision",
    },
];
