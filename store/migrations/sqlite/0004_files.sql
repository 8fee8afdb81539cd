-- Which generated files there are. What is in them lies elsewhere, under the same name.
CREATE TABLE files (
    name TEXT NOT NULL PRIMARY KEY,
    -- The id of the API key.
    owner TEXT NOT NULL,
    -- png, mp4 or webm.
    kind TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    -- Seconds since 1970.
    expires INTEGER NOT NULL
) STRICT;

CREATE INDEX files_by_expiry ON files (expires);
CREATE INDEX files_by_owner ON files (owner, bytes);
