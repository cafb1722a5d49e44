-- One append-only Merkle log per tenant, and one for the instance ('').
CREATE TABLE audit_log (
	tenant TEXT NOT NULL PRIMARY KEY,
	size   INTEGER NOT NULL CHECK (size >= 0),   -- entries appended
	sealed INTEGER NOT NULL CHECK (sealed >= 0)  -- entries under the last signed head
) STRICT;

CREATE TABLE audit_instance (
	one      INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
	name     TEXT NOT NULL,   -- of this installation, in every head's origin
	epoch    INTEGER NOT NULL -- grows with every restore
) STRICT;

CREATE TABLE audit_entry (
	tenant  TEXT NOT NULL,
	seq     INTEGER NOT NULL CHECK (seq >= 0),
	id      TEXT NOT NULL,
	body    TEXT NOT NULL, -- canonical countersign.entry/1; the leaf is over these bytes
	leaf    BLOB NOT NULL,
	-- copies of the body's fields to search by; the body is what counts
	at      INTEGER NOT NULL,
	actor   TEXT NOT NULL,
	action  TEXT NOT NULL,
	subject TEXT NOT NULL,
	run     TEXT NOT NULL,
	PRIMARY KEY (tenant, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX audit_entry_id ON audit_entry (tenant, id);
CREATE INDEX audit_entry_run ON audit_entry (tenant, run, seq) WHERE run <> '';
CREATE INDEX audit_entry_subject ON audit_entry (tenant, subject, seq);
CREATE INDEX audit_entry_actor ON audit_entry (tenant, actor, seq);

-- What an entry says a salted digest of; erasing it leaves the log whole.
CREATE TABLE audit_payload (
	tenant  TEXT NOT NULL,
	seq     INTEGER NOT NULL,
	salt    BLOB NOT NULL,
	payload TEXT NOT NULL,
	PRIMARY KEY (tenant, seq)
) STRICT, WITHOUT ROWID;

-- Tree hashes by tlog's storage index.
CREATE TABLE audit_node (
	tenant TEXT NOT NULL,
	idx    INTEGER NOT NULL,
	hash   BLOB NOT NULL,
	PRIMARY KEY (tenant, idx)
) STRICT, WITHOUT ROWID;

-- One signed head per tenant and physical commit.
CREATE TABLE audit_head (
	tenant TEXT NOT NULL,
	size   INTEGER NOT NULL,
	note   TEXT NOT NULL,
	PRIMARY KEY (tenant, size)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER audit_entry_is_kept BEFORE DELETE ON audit_entry BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_entry_is_final BEFORE UPDATE ON audit_entry BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_node_is_kept BEFORE DELETE ON audit_node BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_node_is_final BEFORE UPDATE ON audit_node BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_head_is_kept BEFORE DELETE ON audit_head BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_head_is_final BEFORE UPDATE ON audit_head BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_payload_is_final BEFORE UPDATE ON audit_payload BEGIN SELECT RAISE(ABORT, 'a payload is erased or kept, never changed'); END;
