-- As in SQLite. Texts sort by their bytes there, and here, too.
CREATE TABLE keys (
    -- The order in which keys were added; SQLite gives each row such a number by itself.
    rowid BIGINT GENERATED ALWAYS AS IDENTITY,
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL UNIQUE,
    -- The secret before the present one works until `old_until`.
    old_digest BYTEA,
    old_until BIGINT,
    -- JSON, as the API writes them.
    scopes TEXT NOT NULL,
    limits TEXT NOT NULL,
    -- Seconds since 1970.
    created BIGINT NOT NULL,
    expires BIGINT,
    rotated BIGINT,
    revoked BIGINT
);

CREATE UNIQUE INDEX keys_in_use ON keys (name) WHERE revoked IS NULL;

-- What requests took together, by day (UTC, 2026-07-31), key, model and upstream.
CREATE TABLE usage (
    day TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    upstream TEXT COLLATE "C" NOT NULL,
    requests BIGINT NOT NULL,
    -- Requests whose answer was sent whole.
    complete BIGINT NOT NULL,
    -- Requests whose usage is an estimate, wholly or in part.
    estimated BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    -- In billionths of the operator's currency.
    cost BIGINT NOT NULL,
    PRIMARY KEY (day, key, model, upstream)
);

-- One row. `revision` grows with every change of a key, in whatever process; `pepper` tells whether the pepper is the one
-- that the digests were made with.
CREATE TABLE state (
    revision BIGINT NOT NULL,
    pepper BYTEA
);

INSERT INTO state (revision) VALUES (0);

CREATE FUNCTION key_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE state SET revision = revision + 1;
    -- All gateways hear of it once it is committed.
    NOTIFY gatewright_keys;
    RETURN NULL;
END
$$;

CREATE TRIGGER key_changed AFTER INSERT OR UPDATE OR DELETE ON keys FOR EACH ROW EXECUTE FUNCTION key_changed();
