-- The latest instant any committed transaction was given (store.Tx.Now).
CREATE TABLE store_clock (
    id      INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    mark_us INTEGER NOT NULL CHECK (mark_us >= 0)
) STRICT;
INSERT INTO store_clock (id, mark_us) VALUES (1, 0);
