-- People, how they prove who they are, and what they hold.
CREATE TABLE person (
	id          TEXT NOT NULL PRIMARY KEY,
	email       TEXT NOT NULL UNIQUE, -- lower case
	name        TEXT NOT NULL,
	password    TEXT NOT NULL,        -- argon2id, PHC string
	disabled_at INTEGER,              -- null: active
	created_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE role_member (
	tenant TEXT NOT NULL,
	person TEXT NOT NULL REFERENCES person (id),
	role   TEXT NOT NULL,
	PRIMARY KEY (tenant, person, role)
) STRICT, WITHOUT ROWID;

CREATE INDEX role_member_by_role ON role_member (tenant, role, person);

CREATE TABLE session (
	id         TEXT NOT NULL PRIMARY KEY,
	digest     BLOB NOT NULL UNIQUE, -- SHA-256 of the cookie's token
	person     TEXT NOT NULL REFERENCES person (id),
	tenant     TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	seen_at    INTEGER NOT NULL,
	expires_at INTEGER NOT NULL,
	address    TEXT NOT NULL,
	agent      TEXT NOT NULL
) STRICT;

CREATE INDEX session_by_person ON session (person, created_at);

CREATE TABLE token (
	id         TEXT NOT NULL PRIMARY KEY,
	tenant     TEXT NOT NULL,
	digest     BLOB NOT NULL UNIQUE, -- SHA-256 of the secret
	shown      TEXT NOT NULL,        -- its first characters, to tell tokens apart
	name       TEXT NOT NULL,
	owner      TEXT NOT NULL REFERENCES person (id),
	personal   INTEGER NOT NULL CHECK (personal IN (0, 1)),
	scopes     TEXT NOT NULL,        -- space separated
	created_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL,
	revoked_at INTEGER
) STRICT;

CREATE TABLE sign_in_failure (
	what  TEXT NOT NULL PRIMARY KEY, -- "email …" or "address …"
	count INTEGER NOT NULL,
	since INTEGER NOT NULL           -- of the window that is counted
) STRICT, WITHOUT ROWID;

CREATE TABLE setup_token (
	one        INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
	digest     BLOB NOT NULL,
	expires_at INTEGER NOT NULL
) STRICT;
