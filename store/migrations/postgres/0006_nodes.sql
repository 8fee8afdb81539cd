-- The gateways that use this database, as each says of itself every few seconds.
CREATE TABLE nodes (
    -- Of the process.
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    version TEXT NOT NULL,
    -- Where it listens, one a line.
    addresses TEXT NOT NULL,
    -- Seconds since 1970.
    started BIGINT NOT NULL,
    seen BIGINT NOT NULL,
    -- Requests that it is answering, and tasks that it works on.
    in_flight BIGINT NOT NULL,
    leases BIGINT NOT NULL
);
