-- What a gateway of the first migrations left: `migrations/sqlite/0001` and `0002`, with rows. It never changes.
CREATE TABLE _sqlx_migrations (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    success BOOLEAN NOT NULL,
    checksum BLOB NOT NULL,
    execution_time BIGINT NOT NULL
);

INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
VALUES (1, 'keys and usage', TRUE, x'2b8c9a9e0ac5a51245b352ea2f4a79c771587c5a1993df1c5ee6272572c7f3e91ec3a689f931073bf5983dcc20469a18', 1000000);

INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
VALUES (2, 'places of responses', TRUE, x'b66aa0a8604bc1b12c3e4f0bb9f99ac5a2fd7abd36aaac73721416981bf6853d898e52bf6f4c6fe084e6d5678c8980a3', 1000000);

CREATE TABLE keys (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    old_digest BLOB,
    old_until INTEGER,
    scopes TEXT NOT NULL,
    limits TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER,
    rotated INTEGER,
    revoked INTEGER
) STRICT;
CREATE UNIQUE INDEX keys_in_use ON keys (name) WHERE revoked IS NULL;
CREATE TABLE usage (
    day TEXT NOT NULL,
    key TEXT NOT NULL,
    model TEXT NOT NULL,
    upstream TEXT NOT NULL,
    requests INTEGER NOT NULL,
    complete INTEGER NOT NULL,
    estimated INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    PRIMARY KEY (day, key, model, upstream)
) STRICT, WITHOUT ROWID;
CREATE TABLE state (
    revision INTEGER NOT NULL,
    pepper BLOB
) STRICT;
INSERT INTO state (revision) VALUES (0);
CREATE TRIGGER key_added AFTER INSERT ON keys BEGIN UPDATE state SET revision = revision + 1; END;
CREATE TRIGGER key_changed AFTER UPDATE ON keys BEGIN UPDATE state SET revision = revision + 1; END;
CREATE TRIGGER key_removed AFTER DELETE ON keys BEGIN UPDATE state SET revision = revision + 1; END;

CREATE TABLE places (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    upstream TEXT NOT NULL,
    key INTEGER,
    model TEXT NOT NULL
) STRICT;

UPDATE state SET pepper = x'1111111111111111111111111111111111111111111111111111111111111111';

INSERT INTO keys (id, name, digest, scopes, limits, created, expires) VALUES
    ('key_1', 'ci', x'2222222222222222222222222222222222222222222222222222222222222222', '{"models":["model-sol"],"operations":[]}', '{"requests_per_minute":60}', 1790000000, 1990000000),
    ('key_2', 'old', x'3333333333333333333333333333333333333333333333333333333333333333', '{"models":[],"operations":[]}', '{}', 1780000000, NULL);

UPDATE keys SET revoked = 1785000000 WHERE id = 'key_2';

UPDATE keys SET old_digest = digest, digest = x'4444444444444444444444444444444444444444444444444444444444444444', rotated = 1795000000, old_until = 1795003600
WHERE id = 'key_1';

INSERT INTO usage VALUES
    ('2026-07-31', 'key_1', 'model-sol', 'one', 3, 2, 1, 30, 4, 2, 20, 5, 9007199254740993),
    ('2026-08-01', 'key_1', 'model-sol', 'two', 1, 1, 0, 10, 0, 0, 20, 0, 2);

INSERT INTO places (id, owner, upstream, key, model) VALUES
    ('resp_1', 'key_1', 'one', 7, 'model-sol'),
    ('resp_2', 'key_1', 'two', NULL, 'model-sol');
