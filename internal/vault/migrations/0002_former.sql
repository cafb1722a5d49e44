-- What equal things were told by before the file's key was replaced: the keys
-- of Equal that former keys gave, so that what was given before is still known.
CREATE TABLE former_equal (
  tenant     TEXT    NOT NULL,
  nr         INTEGER NOT NULL CHECK (nr >= 1),
  outer_key  TEXT    NOT NULL, -- fingerprint of the file's key that wraps it
  wrapped    BLOB    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, nr)
) STRICT;
