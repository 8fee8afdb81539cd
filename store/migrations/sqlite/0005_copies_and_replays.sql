-- Copies of stored responses. What is in them is sealed with a key made of the pepper.
CREATE TABLE copies (
    -- The id of the API key.
    owner TEXT NOT NULL,
    -- Of the response.
    id TEXT NOT NULL,
    -- Tells a copy from others of the same id.
    stamp INTEGER NOT NULL,
    -- When it was kept, in milliseconds since 1970.
    kept INTEGER NOT NULL,
    -- The length of its content.
    bytes INTEGER NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (owner, id)
) STRICT;

CREATE INDEX copies_by_age ON copies (kept, owner, id, bytes);

-- Requests with an Idempotency-Key, under way or answered.
CREATE TABLE replays (
    -- Keyed digest of the operation, the API key and the idempotency key.
    slot TEXT NOT NULL PRIMARY KEY,
    operation TEXT NOT NULL,
    -- The id of the API key.
    owner TEXT NOT NULL,
    -- Keyed digest of the request.
    fingerprint BLOB NOT NULL,
    -- Tells who carries the request out: whoever comes with another one changes nothing any more.
    lease INTEGER NOT NULL,
    -- Until when the row holds, in milliseconds since 1970.
    due INTEGER NOT NULL,
    -- The length of the answer.
    bytes INTEGER NOT NULL,
    -- Sealed with a key made of the pepper; none while the request is under way.
    answer BLOB
) STRICT;

CREATE INDEX replays_by_due ON replays (due);
CREATE INDEX replays_by_operation ON replays (operation, due, owner, slot, bytes) WHERE answer IS NOT NULL;
