-- Which upstream stores a response, for which key; nothing of its content.
CREATE TABLE places (
    -- In the order in which they were stored.
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Of the response, as the upstream gave it.
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    -- The id of the API key.
    owner TEXT COLLATE "C" NOT NULL,
    upstream TEXT NOT NULL,
    -- The beginning of a digest of the upstream's key.
    key BIGINT,
    -- The model as the client called it.
    model TEXT NOT NULL
);
