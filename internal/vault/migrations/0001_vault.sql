-- Sensitive values, apart from everything that is hashed, logged or shown.
-- Three keys, each wrapped by the one above (DESIGN section 9): a file outside
-- the database wraps the tenant's key, that the run's, and that the values.
CREATE TABLE tenant_key (
  tenant     TEXT    NOT NULL,
  version    INTEGER NOT NULL CHECK (version >= 1),
  outer_key  TEXT    NOT NULL, -- fingerprint of the file's key that wraps it
  wrapped    BLOB    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, version)
) STRICT;

-- Gone with its run's data: without the salt a commitment cannot be guessed.
CREATE TABLE data_key (
  tenant     TEXT    NOT NULL,
  run        TEXT    NOT NULL,
  version    INTEGER NOT NULL, -- of the tenant's key
  wrapped    BLOB    NOT NULL, -- data key and salt
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, run),
  FOREIGN KEY (tenant, version) REFERENCES tenant_key (tenant, version)
) STRICT;

CREATE TABLE sealed_value (
  tenant     TEXT    NOT NULL,
  run        TEXT    NOT NULL,
  commitment TEXT    NOT NULL,
  ciphertext BLOB    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, run, commitment),
  FOREIGN KEY (tenant, run) REFERENCES data_key (tenant, run)
) STRICT;
CREATE TRIGGER sealed_value_is_final BEFORE UPDATE ON sealed_value BEGIN SELECT RAISE(ABORT, 'a sealed value never changes'); END;
