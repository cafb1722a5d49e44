-- What a creating call with an Idempotency-Key created, so that repeating it
-- gives the same object.
CREATE TABLE once (
	tenant      TEXT NOT NULL,
	caller      TEXT NOT NULL, -- token or person
	route       TEXT NOT NULL,
	key         TEXT NOT NULL,
	body_digest TEXT NOT NULL,
	object      TEXT NOT NULL,
	created_at  INTEGER NOT NULL,
	PRIMARY KEY (tenant, caller, route, key)
) STRICT;
