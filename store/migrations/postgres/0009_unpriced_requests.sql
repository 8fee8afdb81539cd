-- Requests whose cost is not known, since there was no price when they were made. Earlier versions recorded none.
ALTER TABLE usage ADD COLUMN unpriced BIGINT NOT NULL DEFAULT 0;
