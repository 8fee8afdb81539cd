-- Copies of stored responses. What is in them is sealed with a key made of the pepper.
CREATE TABLE copies (
    -- The id of the API key.
    owner TEXT COLLATE "C" NOT NULL,
    -- Of the response.
    id TEXT COLLATE "C" NOT NULL,
    -- Tells a copy from others of the same id.
    stamp BIGINT NOT NULL,
    -- When it was kept, in milliseconds since 1970.
    kept BIGINT NOT NULL,
    -- The length of its content.
    bytes BIGINT NOT NULL,
    content BYTEA NOT NULL,
    PRIMARY KEY (owner, id)
);

CREATE INDEX copies_by_age ON copies (kept, owner, id, bytes);

-- Requests with an Idempotency-Key, under way or answered.
CREATE TABLE replays (
    -- Keyed digest of the operation, the API key and the idempotency key.
    slot TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    operation TEXT COLLATE "C" NOT NULL,
    -- The id of the API key.
    owner TEXT COLLATE "C" NOT NULL,
    -- Keyed digest of the request.
    fingerprint BYTEA NOT NULL,
    -- Tells who carries the request out: whoever comes with another one changes nothing any more.
    lease BIGINT NOT NULL,
    -- Until when the row holds, in milliseconds since 1970.
    due BIGINT NOT NULL,
    -- The length of the answer.
    bytes BIGINT NOT NULL,
    -- Sealed with a key made of the pepper; none while the request is under way.
    answer BYTEA
);

CREATE INDEX replays_by_due ON replays (due);
CREATE INDEX replays_by_operation ON replays (operation, due, owner, slot, bytes) WHERE answer IS NOT NULL;
