-- What people said of an effect of critical risk whose outcome nobody knew.
-- It moves when two of them say the same. Turn 1 is the first of the two; a
-- later one of turn 1 takes its place.
CREATE TABLE statement (
	tenant   TEXT    NOT NULL,
	effect   TEXT    NOT NULL,
	nr       INTEGER NOT NULL CHECK (nr > 0),
	attempt  INTEGER NOT NULL, -- the try that it is about: another one needs two again
	turn     INTEGER NOT NULL CHECK (turn IN (1, 2)),
	person   TEXT    NOT NULL,
	name     TEXT    NOT NULL,
	outcome  TEXT    NOT NULL CHECK (outcome IN ('happened', 'did_not_send_again', 'did_not_stop', 'give_up')),
	evidence TEXT    NOT NULL,
	receipt  TEXT,             -- canonical JSON; NULL: none given, or it holds what is sensitive
	entry    TEXT    NOT NULL, -- of the audit log
	at       INTEGER NOT NULL,
	PRIMARY KEY (tenant, effect, nr)
) STRICT;
