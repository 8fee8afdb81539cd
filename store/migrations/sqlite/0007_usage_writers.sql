-- Who writes usage, and how far each has come: a batch that is told twice counts once.
CREATE TABLE usage_writers (
    -- Of the process: another one each time it starts.
    id TEXT NOT NULL PRIMARY KEY,
    -- The number of the last batch that was added.
    batch INTEGER NOT NULL,
    -- When it was added, in milliseconds since 1970 by the clock of the database.
    seen INTEGER NOT NULL
) STRICT;
