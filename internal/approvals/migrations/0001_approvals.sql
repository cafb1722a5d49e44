-- What people decide. A request's row holds where it stands and copies of its
-- current subject for lists and for comparison; the subject is what counts.
CREATE TABLE request (
	tenant          TEXT    NOT NULL,
	id              TEXT    NOT NULL,
	kind            TEXT    NOT NULL CHECK (kind IN ('action', 'document', 'bundle')),
	status          TEXT    NOT NULL CHECK (status IN ('pending', 'approved', 'allowed', 'denied', 'rejected', 'expired', 'withdrawn')),
	revision        INTEGER NOT NULL CHECK (revision >= 1),
	digest          TEXT    NOT NULL,
	votes           INTEGER NOT NULL CHECK (votes >= 0), -- grows with every decision and retraction: two at once conflict
	run             TEXT    NOT NULL,
	path            TEXT    NOT NULL,
	pass            INTEGER NOT NULL,
	action          TEXT    NOT NULL,
	workflow        TEXT    NOT NULL,
	tool            TEXT    NOT NULL,
	tool_version    INTEGER NOT NULL,
	tool_digest     TEXT    NOT NULL,
	risk            TEXT    NOT NULL,
	target          TEXT    NOT NULL,
	title           TEXT    NOT NULL,
	summary         TEXT    NOT NULL,
	params          TEXT,
	params_hash     TEXT    NOT NULL,
	request_digest  TEXT    NOT NULL, -- of the frozen request
	idempotency_key TEXT    NOT NULL,
	initiator       TEXT    NOT NULL,
	initiator_name  TEXT    NOT NULL,
	on_behalf_of    TEXT    NOT NULL,
	law             TEXT    NOT NULL, -- JSON: who may decide
	policy          TEXT    NOT NULL,
	policy_version  INTEGER NOT NULL,
	policy_digest   TEXT    NOT NULL,
	rule            TEXT    NOT NULL,
	dead_end        TEXT    NOT NULL, -- why nobody can complete it, as seen when it was asked
	run_version     INTEGER NOT NULL,
	decide_by       INTEGER,          -- the instant itself is over
	execute_within  INTEGER NOT NULL CHECK (execute_within > 0),
	execute_by      INTEGER,
	started_at      INTEGER,          -- admitted for sending
	outcome         TEXT    NOT NULL, -- how its effect ended
	outcome_at      INTEGER,
	closed_by       TEXT    NOT NULL,
	closed_by_name  TEXT    NOT NULL,
	closed_why      TEXT    NOT NULL,
	closed_at       INTEGER,
	created_at      INTEGER NOT NULL,
	updated_at      INTEGER NOT NULL,
	PRIMARY KEY (tenant, id),
	CHECK (status <> 'pending' OR decide_by IS NOT NULL),
	CHECK (status NOT IN ('approved', 'allowed') OR execute_by IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX request_id ON request (id);
CREATE UNIQUE INDEX request_step ON request (tenant, run, path, pass);
CREATE INDEX request_pending ON request (tenant, decide_by, created_at, id) WHERE status = 'pending';
CREATE INDEX request_running ON request (tenant, execute_by) WHERE status IN ('approved', 'allowed') AND outcome IN ('', 'not_done');
CREATE INDEX request_unknown ON request (tenant, id) WHERE outcome = 'unknown';
CREATE INDEX request_newest ON request (tenant, created_at, id);
CREATE INDEX request_rejected ON request (tenant, tool, params_hash) WHERE status = 'rejected';

CREATE TABLE revision (
	tenant         TEXT    NOT NULL,
	request        TEXT    NOT NULL,
	revision       INTEGER NOT NULL CHECK (revision >= 1),
	subject        TEXT    NOT NULL, -- canonical countersign.subject/1; the digest is over these bytes
	digest         TEXT    NOT NULL,
	params_hash    TEXT    NOT NULL,
	effect         TEXT    NOT NULL CHECK (effect IN ('allow', 'deny', 'approve')),
	supersedes     TEXT    NOT NULL, -- digest of the revision before
	why            TEXT    NOT NULL,
	comment        TEXT    NOT NULL,
	editor         TEXT    NOT NULL, -- who changed content; empty: nobody did
	editor_name    TEXT    NOT NULL,
	caused_by      TEXT    NOT NULL, -- who brought it about otherwise
	caused_by_name TEXT    NOT NULL,
	created_at     INTEGER NOT NULL,
	PRIMARY KEY (tenant, request, revision),
	FOREIGN KEY (tenant, request) REFERENCES request (tenant, id)
) STRICT;

CREATE TABLE decision (
	tenant         TEXT    NOT NULL,
	id             TEXT    NOT NULL,
	request        TEXT    NOT NULL,
	revision       INTEGER NOT NULL,
	digest         TEXT    NOT NULL,
	person         TEXT    NOT NULL,
	person_name    TEXT    NOT NULL,
	turn           INTEGER NOT NULL, -- 1, and one more after each retraction
	verdict        TEXT    NOT NULL CHECK (verdict IN ('approve', 'reject')),
	groups         TEXT    NOT NULL, -- JSON: names of the groups the person stands in
	authority      TEXT    NOT NULL,
	rule           TEXT    NOT NULL,
	policy         TEXT    NOT NULL,
	policy_version INTEGER NOT NULL,
	auth           TEXT    NOT NULL,
	channel        TEXT    NOT NULL,
	comment        TEXT    NOT NULL CHECK (verdict = 'approve' OR comment <> ''),
	decided_at     INTEGER NOT NULL,
	PRIMARY KEY (tenant, id),
	UNIQUE (tenant, request, revision, person, turn),
	FOREIGN KEY (tenant, request, revision) REFERENCES revision (tenant, request, revision)
) STRICT;
CREATE UNIQUE INDEX decision_id ON decision (id);
CREATE INDEX decision_person ON decision (tenant, person, decided_at, id);

CREATE TABLE retraction (
	tenant   TEXT    NOT NULL,
	decision TEXT    NOT NULL,
	why      TEXT    NOT NULL,
	at       INTEGER NOT NULL,
	PRIMARY KEY (tenant, decision),
	FOREIGN KEY (tenant, decision) REFERENCES decision (tenant, id)
) STRICT;

-- Links to the audit log, set once; the rows they belong to stay as they were.
CREATE TABLE decision_entry (
	tenant   TEXT NOT NULL,
	decision TEXT NOT NULL,
	entry    TEXT NOT NULL,
	PRIMARY KEY (tenant, decision),
	FOREIGN KEY (tenant, decision) REFERENCES decision (tenant, id)
) STRICT;

CREATE TABLE ruling_entry (
	tenant   TEXT    NOT NULL,
	request  TEXT    NOT NULL,
	revision INTEGER NOT NULL,
	entry    TEXT    NOT NULL,
	PRIMARY KEY (tenant, request, revision),
	FOREIGN KEY (tenant, request, revision) REFERENCES revision (tenant, request, revision)
) STRICT;

-- More time to decide. It changes neither digest nor votes.
CREATE TABLE extension (
	tenant    TEXT    NOT NULL,
	request   TEXT    NOT NULL,
	revision  INTEGER NOT NULL,
	nr        INTEGER NOT NULL CHECK (nr >= 1),
	decide_by INTEGER NOT NULL,
	person    TEXT    NOT NULL,
	name      TEXT    NOT NULL,
	why       TEXT    NOT NULL CHECK (why <> ''),
	at        INTEGER NOT NULL,
	PRIMARY KEY (tenant, request, revision, nr),
	FOREIGN KEY (tenant, request, revision) REFERENCES revision (tenant, request, revision)
) STRICT;

-- The first time a person saw the whole of a revision.
CREATE TABLE first_view (
	tenant   TEXT    NOT NULL,
	request  TEXT    NOT NULL,
	revision INTEGER NOT NULL,
	person   TEXT    NOT NULL,
	name     TEXT    NOT NULL,
	at       INTEGER NOT NULL,
	PRIMARY KEY (tenant, request, revision, person),
	FOREIGN KEY (tenant, request, revision) REFERENCES revision (tenant, request, revision)
) STRICT;

CREATE TABLE remark (
	tenant  TEXT    NOT NULL,
	request TEXT    NOT NULL,
	nr      INTEGER NOT NULL CHECK (nr >= 1),
	person  TEXT    NOT NULL,
	name    TEXT    NOT NULL,
	body    TEXT    NOT NULL CHECK (body <> ''),
	at      INTEGER NOT NULL,
	PRIMARY KEY (tenant, request, nr),
	FOREIGN KEY (tenant, request) REFERENCES request (tenant, id)
) STRICT;

CREATE TRIGGER request_is_kept BEFORE DELETE ON request BEGIN SELECT RAISE(ABORT, 'a request is kept'); END;
CREATE TRIGGER revision_is_kept BEFORE DELETE ON revision BEGIN SELECT RAISE(ABORT, 'a revision is kept'); END;
CREATE TRIGGER revision_is_final BEFORE UPDATE ON revision BEGIN SELECT RAISE(ABORT, 'a revision never changes'); END;
CREATE TRIGGER decision_is_kept BEFORE DELETE ON decision BEGIN SELECT RAISE(ABORT, 'a decision is kept'); END;
CREATE TRIGGER decision_is_final BEFORE UPDATE ON decision BEGIN SELECT RAISE(ABORT, 'a decision never changes'); END;
CREATE TRIGGER retraction_is_kept BEFORE DELETE ON retraction BEGIN SELECT RAISE(ABORT, 'a retraction is kept'); END;
CREATE TRIGGER retraction_is_final BEFORE UPDATE ON retraction BEGIN SELECT RAISE(ABORT, 'a retraction never changes'); END;
CREATE TRIGGER decision_entry_is_kept BEFORE DELETE ON decision_entry BEGIN SELECT RAISE(ABORT, 'a link to the log is kept'); END;
CREATE TRIGGER decision_entry_is_final BEFORE UPDATE ON decision_entry BEGIN SELECT RAISE(ABORT, 'a link to the log never changes'); END;
CREATE TRIGGER ruling_entry_is_kept BEFORE DELETE ON ruling_entry BEGIN SELECT RAISE(ABORT, 'a link to the log is kept'); END;
CREATE TRIGGER ruling_entry_is_final BEFORE UPDATE ON ruling_entry BEGIN SELECT RAISE(ABORT, 'a link to the log never changes'); END;
CREATE TRIGGER extension_is_kept BEFORE DELETE ON extension BEGIN SELECT RAISE(ABORT, 'an extension is kept'); END;
CREATE TRIGGER extension_is_final BEFORE UPDATE ON extension BEGIN SELECT RAISE(ABORT, 'an extension never changes'); END;
CREATE TRIGGER first_view_is_kept BEFORE DELETE ON first_view BEGIN SELECT RAISE(ABORT, 'a view is kept'); END;
CREATE TRIGGER first_view_is_final BEFORE UPDATE ON first_view BEGIN SELECT RAISE(ABORT, 'a view never changes'); END;
CREATE TRIGGER remark_is_kept BEFORE DELETE ON remark BEGIN SELECT RAISE(ABORT, 'a remark is kept'); END;
CREATE TRIGGER remark_is_final BEFORE UPDATE ON remark BEGIN SELECT RAISE(ABORT, 'a remark never changes'); END;
