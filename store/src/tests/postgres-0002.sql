-- What a gateway of the first migrations left: `migrations/postgres/0001` and `0002`, with rows. It never changes.
CREATE TABLE _sqlx_migrations (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on TIMESTAMPTZ NOT NULL DEFAULT now(),
    success BOOLEAN NOT NULL,
    checksum BYTEA NOT NULL,
    execution_time BIGINT NOT NULL
);

INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
VALUES (1, 'keys and usage', TRUE, '\xce794adbbc0974948dd76d978ad9d4b46cb8a1a9fe8b967930d999d35a69de2d622ac5ba9ef5f9aa631a7ed09718dc38', 1000000);

INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
VALUES (2, 'places of responses', TRUE, '\x90012fa16be47bc11168f046c3802b2baf576afef696aa5a2cdacac21ded719473bb96d01f09d18b2ec22c2a745f1391', 1000000);

CREATE TABLE keys (
    rowid BIGINT GENERATED ALWAYS AS IDENTITY,
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL UNIQUE,
    old_digest BYTEA,
    old_until BIGINT,
    scopes TEXT NOT NULL,
    limits TEXT NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT,
    rotated BIGINT,
    revoked BIGINT
);

CREATE UNIQUE INDEX keys_in_use ON keys (name) WHERE revoked IS NULL;

CREATE TABLE usage (
    day TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    upstream TEXT COLLATE "C" NOT NULL,
    requests BIGINT NOT NULL,
    complete BIGINT NOT NULL,
    estimated BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    PRIMARY KEY (day, key, model, upstream)
);

CREATE TABLE state (
    revision BIGINT NOT NULL,
    pepper BYTEA
);

INSERT INTO state (revision) VALUES (0);

CREATE FUNCTION key_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE state SET revision = revision + 1;
    NOTIFY gatewright_keys;
    RETURN NULL;
END
$$;

CREATE TRIGGER key_changed AFTER INSERT OR UPDATE OR DELETE ON keys FOR EACH ROW EXECUTE FUNCTION key_changed();

CREATE TABLE places (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    owner TEXT COLLATE "C" NOT NULL,
    upstream TEXT NOT NULL,
    key BIGINT,
    model TEXT NOT NULL
);

UPDATE state SET pepper = '\x1111111111111111111111111111111111111111111111111111111111111111';

INSERT INTO keys (id, name, digest, scopes, limits, created, expires) VALUES
    ('key_1', 'ci', '\x2222222222222222222222222222222222222222222222222222222222222222', '{"models":["model-sol"],"operations":[]}', '{"requests_per_minute":60}', 1790000000, 1990000000),
    ('key_2', 'old', '\x3333333333333333333333333333333333333333333333333333333333333333', '{"models":[],"operations":[]}', '{}', 1780000000, NULL);

UPDATE keys SET revoked = 1785000000 WHERE id = 'key_2';

UPDATE keys SET old_digest = digest, digest = '\x4444444444444444444444444444444444444444444444444444444444444444', rotated = 1795000000, old_until = 1795003600
WHERE id = 'key_1';

INSERT INTO usage VALUES
    ('2026-07-31', 'key_1', 'model-sol', 'one', 3, 2, 1, 30, 4, 2, 20, 5, 9007199254740993),
    ('2026-08-01', 'key_1', 'model-sol', 'two', 1, 1, 0, 10, 0, 0, 20, 0, 2);

INSERT INTO places (id, owner, upstream, key, model) VALUES
    ('resp_1', 'key_1', 'one', 7, 'model-sol'),
    ('resp_2', 'key_1', 'two', NULL, 'model-sol');
