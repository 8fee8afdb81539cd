-- The configuration that gateways share: a document, each change of which is a revision.
CREATE TABLE configs (
    revision INTEGER NOT NULL PRIMARY KEY,
    -- Seconds since 1970.
    made INTEGER NOT NULL,
    -- Who made it, as they say.
    author TEXT NOT NULL,
    -- The revision whose document was taken again.
    repeats INTEGER,
    -- TOML, without secrets.
    document TEXT NOT NULL
) STRICT;

-- The revision that a gateway uses.
ALTER TABLE nodes ADD COLUMN config INTEGER;
