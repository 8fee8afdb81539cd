-- Which generated files there are. What is in them lies elsewhere, under the same name.
CREATE TABLE files (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    -- The id of the API key.
    owner TEXT COLLATE "C" NOT NULL,
    -- png, mp4 or webm.
    kind TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    -- Seconds since 1970.
    expires BIGINT NOT NULL
);

CREATE INDEX files_by_expiry ON files (expires);
CREATE INDEX files_by_owner ON files (owner, bytes);
