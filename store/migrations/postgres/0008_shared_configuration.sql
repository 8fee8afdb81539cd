-- The configuration that gateways share: a document, each change of which is a revision.
CREATE TABLE configs (
    revision BIGINT NOT NULL PRIMARY KEY,
    -- Seconds since 1970.
    made BIGINT NOT NULL,
    -- Who made it, as they say.
    author TEXT NOT NULL,
    -- The revision whose document was taken again.
    repeats BIGINT,
    -- TOML, without secrets.
    document TEXT NOT NULL
);

CREATE FUNCTION config_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- All gateways hear of it once it is committed.
    NOTIFY gatewright_config;
    RETURN NULL;
END
$$;

CREATE TRIGGER config_changed AFTER INSERT ON configs FOR EACH STATEMENT EXECUTE FUNCTION config_changed();

-- The revision that a gateway uses.
ALTER TABLE nodes ADD COLUMN config BIGINT;
