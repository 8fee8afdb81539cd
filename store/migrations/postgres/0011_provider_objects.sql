-- Files and batches of API keys, and which upstream has them. The process that raised `lease` follows a batch: until `due`, no other does.
CREATE TABLE objects (
    -- Orders those of a key by creation.
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The id of the API key.
    owner TEXT COLLATE "C" NOT NULL,
    -- As its provider named it.
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('file', 'batch')),
    -- What it is for, of a file.
    purpose TEXT NOT NULL,
    -- What the provider says of it, and where it is, sealed.
    content BYTEA NOT NULL,
    -- Milliseconds since 1970; NULL: it stays until it is deleted.
    expires BIGINT,
    lease BIGINT NOT NULL,
    -- Milliseconds since 1970; NULL: it has ended.
    due BIGINT,
    UNIQUE (owner, id)
);

CREATE INDEX objects_in_progress ON objects (due) WHERE due IS NOT NULL;
CREATE INDEX objects_by_expiry ON objects (expires) WHERE expires IS NOT NULL;
