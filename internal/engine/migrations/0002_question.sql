-- What runs ask people, as it was asked, and who answered. One row a pass of
-- an ask step; the answer itself is the step's output, in its checkpoint.
CREATE TABLE question (
  tenant        TEXT    NOT NULL,
  run           TEXT    NOT NULL,
  path          TEXT    NOT NULL,
  pass          INTEGER NOT NULL,
  status        TEXT    NOT NULL CHECK (status IN ('open','answered','expired','withdrawn')),
  text          TEXT    NOT NULL,
  roles         TEXT    NOT NULL, -- JSON list: whoever has one of them may answer
  form_digest   TEXT    NOT NULL,
  answer_by     INTEGER,          -- NULL: no deadline
  asked_at      INTEGER NOT NULL,
  answer_digest TEXT    NOT NULL, -- of the recorded output; empty: none
  answered_by   TEXT,             -- JSON actor
  closed_at     INTEGER,
  PRIMARY KEY (tenant, run, path, pass),
  CHECK ((status = 'open') = (closed_at IS NULL)),
  CHECK ((status = 'answered') = (answered_by IS NOT NULL)),
  CHECK ((status = 'answered') = (answer_digest <> ''))
) STRICT;
CREATE INDEX question_open ON question (tenant, asked_at, run, path) WHERE status = 'open';

CREATE TRIGGER question_closed BEFORE UPDATE ON question WHEN OLD.status <> 'open'
BEGIN SELECT RAISE(ABORT, 'a question is closed once'); END;
CREATE TRIGGER question_identity BEFORE UPDATE OF tenant, run, path, pass, text, roles, form_digest, answer_by, asked_at ON question
BEGIN SELECT RAISE(ABORT, 'what was asked does not change'); END;
CREATE TRIGGER question_no_delete BEFORE DELETE ON question BEGIN SELECT RAISE(ABORT, 'questions are kept'); END;
