-- Keys, without their secrets: `digest` is HMAC-SHA256 of the secret with the pepper, which is in a file of its own.
CREATE TABLE keys (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    -- The secret before the present one works until `old_until`.
    old_digest BLOB,
    old_until INTEGER,
    -- JSON, as the API writes them.
    scopes TEXT NOT NULL,
    limits TEXT NOT NULL,
    -- Seconds since 1970.
    created INTEGER NOT NULL,
    expires INTEGER,
    rotated INTEGER,
    revoked INTEGER
) STRICT;

CREATE UNIQUE INDEX keys_in_use ON keys (name) WHERE revoked IS NULL;

-- What requests took together, by day (UTC, 2026-07-31), key, model and upstream.
CREATE TABLE usage (
    day TEXT NOT NULL,
    key TEXT NOT NULL,
    model TEXT NOT NULL,
    upstream TEXT NOT NULL,
    requests INTEGER NOT NULL,
    -- Requests whose answer was sent whole.
    complete INTEGER NOT NULL,
    -- Requests whose usage is an estimate, wholly or in part.
    estimated INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    -- In billionths of the operator's currency.
    cost INTEGER NOT NULL,
    PRIMARY KEY (day, key, model, upstream)
) STRICT, WITHOUT ROWID;

-- One row. `revision` grows with every change of a key, in whatever process; `pepper` tells whether the pepper file is the
-- one that the digests were made with.
CREATE TABLE state (
    revision INTEGER NOT NULL,
    pepper BLOB
) STRICT;

INSERT INTO state (revision) VALUES (0);

CREATE TRIGGER key_added AFTER INSERT ON keys BEGIN UPDATE state SET revision = revision + 1; END;
CREATE TRIGGER key_changed AFTER UPDATE ON keys BEGIN UPDATE state SET revision = revision + 1; END;
CREATE TRIGGER key_removed AFTER DELETE ON keys BEGIN UPDATE state SET revision = revision + 1; END;
