-- Drills that were held of the workflows here, the newest of each version.
CREATE TABLE drill (
	tenant   TEXT    NOT NULL,
	digest   TEXT    NOT NULL, -- of the workflow version
	cases    INTEGER NOT NULL CHECK (cases >= 0),
	findings INTEGER NOT NULL CHECK (findings >= 0),
	status   TEXT    NOT NULL, -- how the run ended undisturbed
	at       INTEGER NOT NULL,
	PRIMARY KEY (tenant, digest)
) STRICT;
