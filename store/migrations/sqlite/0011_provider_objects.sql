-- Files and batches of API keys, and which upstream has them. The process that raised `lease` follows a batch: until `due`, no other does.
CREATE TABLE objects (
    -- Orders those of a key by creation.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The id of the API key.
    owner TEXT NOT NULL,
    -- As its provider named it.
    id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('file', 'batch')),
    -- What it is for, of a file.
    purpose TEXT NOT NULL,
    -- What the provider says of it, and where it is, sealed.
    content BLOB NOT NULL,
    -- Milliseconds since 1970; NULL: it stays until it is deleted.
    expires INTEGER,
    lease INTEGER NOT NULL,
    -- Milliseconds since 1970; NULL: it has ended.
    due INTEGER,
    UNIQUE (owner, id)
) STRICT;

CREATE INDEX objects_in_progress ON objects (due) WHERE due IS NOT NULL;
CREATE INDEX objects_by_expiry ON objects (expires) WHERE expires IS NOT NULL;
