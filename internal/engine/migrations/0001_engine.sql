-- The index: small rows, fast lists. One row a run.
CREATE TABLE run (
  tenant           TEXT    NOT NULL,
  id               TEXT    NOT NULL,
  key              TEXT,
  thread           TEXT    NOT NULL,
  workflow         TEXT    NOT NULL,
  workflow_version INTEGER NOT NULL,
  workflow_digest  TEXT    NOT NULL,
  tools            TEXT    NOT NULL, -- JSON: tool name to digest
  status           TEXT    NOT NULL CHECK (status IN ('queued','running','waiting_approval','waiting_input','sleeping','retrying','blocked','completed','rejected','expired','failed','cancelled')),
  version          INTEGER NOT NULL CHECK (version >= 0), -- number of checkpoints
  head             TEXT    NOT NULL, -- digest of the last one
  step             TEXT    NOT NULL,
  waiting_for      TEXT    NOT NULL, -- JSON list
  initiator        TEXT    NOT NULL,
  initiator_name   TEXT    NOT NULL,
  on_behalf_of     TEXT    NOT NULL,
  input            TEXT    NOT NULL,
  output           TEXT,
  error            TEXT,             -- JSON failure: why it failed, or why it is blocked
  versions         TEXT    NOT NULL,
  trace_id         TEXT    NOT NULL,
  lease_owner      TEXT,
  lease_until      INTEGER,
  fence            INTEGER NOT NULL CHECK (fence >= 0),
  epoch            INTEGER NOT NULL,
  crashes          INTEGER NOT NULL, -- claims without progress since
  signals          INTEGER NOT NULL, -- wake-ups so far; one that comes while a driver goes to sleep is not lost
  wake_at          INTEGER,          -- when the engine looks at it next; NULL: not by itself
  cancel_reason    TEXT,
  cancel_by        TEXT,             -- JSON actor
  created_at       INTEGER NOT NULL,
  updated_at       INTEGER NOT NULL,
  finished_at      INTEGER,
  PRIMARY KEY (tenant, id),
  CHECK ((lease_owner IS NULL) = (lease_until IS NULL))
) STRICT;
CREATE UNIQUE INDEX run_id ON run (id);
CREATE UNIQUE INDEX run_key ON run (tenant, key) WHERE key IS NOT NULL;
CREATE INDEX run_wake ON run (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX run_leased ON run (epoch) WHERE lease_owner IS NOT NULL;
CREATE INDEX run_status ON run (tenant, status, id);
CREATE INDEX run_workflow ON run (tenant, workflow, id);

-- The snapshots: append-only, only the step's own output.
CREATE TABLE checkpoint (
  tenant        TEXT    NOT NULL,
  run           TEXT    NOT NULL,
  version       INTEGER NOT NULL CHECK (version >= 1),
  path          TEXT    NOT NULL,
  pass          INTEGER NOT NULL,
  kind          TEXT    NOT NULL,
  event         TEXT    NOT NULL, -- canonical JSON without output and time
  output        TEXT,             -- canonical JSON
  output_digest TEXT,
  creator       TEXT    NOT NULL,
  engine        TEXT    NOT NULL,
  state_schema  INTEGER NOT NULL,
  digest        TEXT    NOT NULL,
  previous      TEXT    NOT NULL,
  created_at    INTEGER NOT NULL,
  PRIMARY KEY (tenant, run, version),
  CHECK ((output IS NULL) = (output_digest IS NULL))
) STRICT;
CREATE TRIGGER checkpoint_no_update BEFORE UPDATE ON checkpoint BEGIN SELECT RAISE(ABORT, 'checkpoints are append-only'); END;
CREATE TRIGGER checkpoint_no_delete BEFORE DELETE ON checkpoint BEGIN SELECT RAISE(ABORT, 'checkpoints are append-only'); END;

CREATE TABLE step (
  tenant          TEXT    NOT NULL,
  run             TEXT    NOT NULL,
  path            TEXT    NOT NULL,
  pass            INTEGER NOT NULL,
  kind            TEXT    NOT NULL,
  tool            TEXT    NOT NULL,
  status          TEXT    NOT NULL CHECK (status IN ('pending','running','waiting','completed','failed','skipped','cancelled')),
  attempts        INTEGER NOT NULL,
  tries           INTEGER NOT NULL, -- failed tries since the last progress
  tried_at        INTEGER NOT NULL, -- the first of them
  retry_at        INTEGER NOT NULL, -- not before this, unless a person asks; 0: any time
  idempotency_key TEXT    NOT NULL,
  input_digest    TEXT    NOT NULL,
  output_at       INTEGER NOT NULL, -- version of the checkpoint that holds the output; 0: none
  error           TEXT,
  error_class     TEXT    NOT NULL,
  approval        TEXT    NOT NULL,
  action          TEXT    NOT NULL,
  started_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  PRIMARY KEY (tenant, run, path, pass)
) STRICT;

-- A proposed call of a write tool, as it was when it was proposed.
CREATE TABLE action (
  tenant      TEXT    NOT NULL,
  id          TEXT    NOT NULL,
  run         TEXT    NOT NULL,
  path        TEXT    NOT NULL,
  pass        INTEGER NOT NULL,
  tool        TEXT    NOT NULL,
  tool_digest TEXT    NOT NULL,
  approval    TEXT    NOT NULL,
  params      TEXT    NOT NULL,
  base        TEXT    NOT NULL, -- what the key is made of, but for the generation
  created_at  INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT;
CREATE UNIQUE INDEX action_step ON action (tenant, run, path, pass);
CREATE INDEX action_approval ON action (tenant, approval);

-- The ledger: one row an external change. The law of its transitions is below.
CREATE TABLE effect (
  tenant          TEXT    NOT NULL,
  id              TEXT    NOT NULL,
  action          TEXT    NOT NULL,
  run             TEXT    NOT NULL,
  path            TEXT    NOT NULL,
  pass            INTEGER NOT NULL,
  tool            TEXT    NOT NULL,
  tool_version    INTEGER NOT NULL,
  tool_digest     TEXT    NOT NULL,
  key             TEXT    NOT NULL,
  base            TEXT    NOT NULL,
  generation      INTEGER NOT NULL CHECK (generation >= 1),
  status          TEXT    NOT NULL CHECK (status IN ('prepared','sent','confirmed','refused','not_done','unknown','abandoned')),
  attempts        INTEGER NOT NULL,
  fence           INTEGER NOT NULL, -- of the driver that sent
  approval        TEXT    NOT NULL,
  digest          TEXT    NOT NULL, -- of the admitted subject
  request_digest  TEXT    NOT NULL,
  request         TEXT,             -- the admitted frozen bytes, once sent
  params          TEXT,
  pin             TEXT,
  first_sent_at   INTEGER,
  sent_at         INTEGER,
  key_expires_at  INTEGER,
  external_ref    TEXT    NOT NULL,
  receipt         TEXT,
  message         TEXT    NOT NULL,
  resolved_at     INTEGER,
  resolved_by     TEXT    NOT NULL,
  evidence        TEXT    NOT NULL,
  reconcile_at    INTEGER,
  reconcile_count INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  PRIMARY KEY (tenant, id),
  CHECK (status IN ('prepared','abandoned','refused') OR request IS NOT NULL),
  CHECK ((attempts = 0) = (sent_at IS NULL))
) STRICT;
CREATE UNIQUE INDEX effect_key ON effect (tenant, key);
CREATE UNIQUE INDEX effect_base ON effect (tenant, base, generation);
CREATE UNIQUE INDEX effect_id ON effect (id);
CREATE INDEX effect_run ON effect (tenant, run, path, pass);
CREATE INDEX effect_unknown ON effect (tenant, id) WHERE status = 'unknown';

CREATE TRIGGER effect_edges BEFORE UPDATE OF status ON effect WHEN
  NOT (OLD.status = NEW.status AND OLD.status <> 'sent'
    OR OLD.status = 'prepared' AND NEW.status IN ('sent','abandoned')
    OR OLD.status = 'sent'     AND NEW.status IN ('confirmed','refused','not_done','unknown')
    OR OLD.status = 'not_done' AND NEW.status IN ('sent','abandoned')
    OR OLD.status = 'unknown'  AND NEW.status IN ('sent','confirmed','refused','not_done','abandoned'))
BEGIN SELECT RAISE(ABORT, 'the ledger does not allow this transition'); END;
CREATE TRIGGER effect_identity BEFORE UPDATE OF tenant, id, action, run, path, pass, tool, tool_digest, key, base, generation ON effect
BEGIN SELECT RAISE(ABORT, 'what an effect is does not change'); END;
CREATE TRIGGER effect_no_delete BEFORE DELETE ON effect BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

-- What was learned about an effect beside its own outcome, kept for ever.
CREATE TABLE evidence (
  tenant     TEXT    NOT NULL,
  effect     TEXT    NOT NULL,
  seq        INTEGER NOT NULL,
  kind       TEXT    NOT NULL CHECK (kind IN ('late_answer','query','person')),
  author     TEXT    NOT NULL,
  body       TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, effect, seq)
) STRICT;
CREATE TRIGGER evidence_no_update BEFORE UPDATE ON evidence BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;
CREATE TRIGGER evidence_no_delete BEFORE DELETE ON evidence BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;
