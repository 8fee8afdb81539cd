-- Requests that failed: the response had a status of 400 or more, or was a stream that ended in an error. Earlier versions
-- recorded none of this and of the rest.
ALTER TABLE usage ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;
-- Requests whose answer was sent completely, and whose times are in the next two columns.
ALTER TABLE usage ADD COLUMN timed INTEGER NOT NULL DEFAULT 0;
-- Milliseconds from the head of a request until its answer began.
ALTER TABLE usage ADD COLUMN first_byte_ms INTEGER NOT NULL DEFAULT 0;
-- Milliseconds from the head of a request until its answer was complete.
ALTER TABLE usage ADD COLUMN latency_ms INTEGER NOT NULL DEFAULT 0;
