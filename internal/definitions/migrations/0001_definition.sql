-- Every definition that was ever in force, immutable: a run keeps the digests
-- it started with, so rows are never changed and never deleted.
CREATE TABLE definition (
	tenant     TEXT NOT NULL,
	kind       TEXT NOT NULL CHECK (kind IN ('workflow', 'tool', 'policy')),
	name       TEXT NOT NULL,
	version    INTEGER NOT NULL CHECK (version >= 1),
	digest     TEXT NOT NULL,
	compiled   TEXT NOT NULL, -- canonical JSON; its digest is the digest
	source     TEXT NOT NULL, -- the YAML as read, for people
	file       TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, kind, name, version)
) STRICT;

CREATE UNIQUE INDEX definition_digest ON definition (tenant, kind, digest);

CREATE TRIGGER definition_is_immutable BEFORE UPDATE ON definition
BEGIN SELECT RAISE(ABORT, 'a definition is immutable'); END;

CREATE TRIGGER definition_is_kept BEFORE DELETE ON definition
BEGIN SELECT RAISE(ABORT, 'a definition is kept for the runs that use it'); END;

-- Which version new runs and new proposals take.
CREATE TABLE definition_in_force (
	tenant  TEXT NOT NULL,
	kind    TEXT NOT NULL,
	name    TEXT NOT NULL,
	version INTEGER NOT NULL,
	since   INTEGER NOT NULL,
	PRIMARY KEY (tenant, kind, name),
	FOREIGN KEY (tenant, kind, name, version) REFERENCES definition (tenant, kind, name, version)
) STRICT;
