-- The gateways that use this database, as each says of itself every few seconds.
CREATE TABLE nodes (
    -- Of the process.
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    -- Where it listens, one a line.
    addresses TEXT NOT NULL,
    -- Seconds since 1970.
    started INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    -- Requests that it is answering, and tasks that it works on.
    in_flight INTEGER NOT NULL,
    leases INTEGER NOT NULL
) STRICT;
