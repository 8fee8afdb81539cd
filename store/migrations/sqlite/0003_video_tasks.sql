-- Video tasks (section 3), and what is to be told of them. Whoever raises `lease` works on a row: until `due`, nobody
-- else does, and whoever comes with a lower lease changes nothing any more.
CREATE TABLE tasks (
    id TEXT NOT NULL PRIMARY KEY,
    -- The id of the API key.
    owner TEXT NOT NULL,
    -- Seconds since 1970.
    created INTEGER NOT NULL,
    -- As the client called it.
    model TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'completed', 'failed')),
    -- How it ended, as JSON.
    outcome TEXT,
    -- What is left to do, as JSON; none while it is being submitted: then nobody was told of it.
    errand TEXT,
    -- Whether somebody is told when it has ended.
    announced INTEGER NOT NULL,
    lease INTEGER NOT NULL,
    -- Milliseconds since 1970.
    due INTEGER NOT NULL,
    -- Seconds since 1970.
    ended INTEGER
) STRICT;

CREATE INDEX tasks_in_progress ON tasks (due) WHERE ended IS NULL;
CREATE INDEX tasks_of_keys ON tasks (owner) WHERE ended IS NULL;
CREATE INDEX tasks_by_end ON tasks (ended) WHERE ended IS NOT NULL;
CREATE INDEX tasks_of_keys_by_end ON tasks (owner, ended) WHERE ended IS NOT NULL;

CREATE TABLE deliveries (
    -- The id of the message, the same at each attempt.
    id TEXT NOT NULL PRIMARY KEY,
    task TEXT NOT NULL,
    owner TEXT NOT NULL,
    url TEXT NOT NULL,
    body TEXT NOT NULL,
    -- Seconds since 1970.
    created INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'dead')),
    attempts INTEGER NOT NULL,
    -- Why the last attempt failed.
    problem TEXT,
    lease INTEGER NOT NULL,
    -- Milliseconds since 1970.
    due INTEGER NOT NULL,
    -- Seconds since 1970.
    ended INTEGER
) STRICT;

CREATE INDEX deliveries_pending ON deliveries (due) WHERE status = 'pending';
CREATE INDEX deliveries_by_end ON deliveries (ended) WHERE ended IS NOT NULL;
