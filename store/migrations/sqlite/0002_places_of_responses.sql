-- Which upstream stores a response, for which key; nothing of its content.
CREATE TABLE places (
    -- In the order in which they were stored.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Of the response, as the upstream gave it.
    id TEXT NOT NULL UNIQUE,
    -- The id of the API key.
    owner TEXT NOT NULL,
    upstream TEXT NOT NULL,
    -- The beginning of a digest of the upstream's key.
    key INTEGER,
    -- The model as the client called it.
    model TEXT NOT NULL
) STRICT;
