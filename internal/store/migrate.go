package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"
)

const sqlMigrationTable = `CREATE TABLE IF NOT EXISTS migration (
    line       TEXT    NOT NULL,
    version    INTEGER NOT NULL CHECK (version > 0),
    name       TEXT    NOT NULL,
    sha256     TEXT    NOT NULL,
    applied_at INTEGER NOT NULL,
    PRIMARY KEY (line, version)
) STRICT, WITHOUT ROWID`

// migrate brings the database to what the program knows. Each file and its
// row are one transaction, so a crash leaves whole migrations only. Before
// the first one due, a database that holds anything is copied.
//
// Foreign keys are off meanwhile, as SQLite asks for rebuilding a table
// (https://www.sqlite.org/lang_altertable.html), and checked before each
// commit.
func migrate(ctx context.Context, c *conn, o *Options) error {
	steps, err := readLines(append([]Line{ownLine}, o.Lines...))
	if err != nil {
		return err
	}
	if err := c.run(sqlMigrationTable); err != nil {
		return fmt.Errorf("create the migration table: %w", named(err))
	}
	done, err := applied(ctx, c)
	if err != nil {
		return err
	}
	due, err := plan(o.Path, steps, done)
	if err != nil || len(due) == 0 {
		return err
	}
	if len(done) > 0 {
		if err := copyBefore(ctx, c, o, due[0]); err != nil {
			return fmt.Errorf("copy the database before migrating it: %w", err)
		}
	}
	if err := c.run("PRAGMA foreign_keys=OFF"); err != nil {
		return err
	}
	for _, s := range due {
		if err := apply(ctx, c, o, s); err != nil {
			return fmt.Errorf("migration %s: %w", s, err)
		}
	}
	return c.run("PRAGMA foreign_keys=ON")
}

// apply runs one migration and records it, unless another process was faster.
func apply(ctx context.Context, c *conn, o *Options, s step) error {
	if err := o.fault(s.point("begin")); err != nil {
		return err
	}
	if err := c.run(sqlBegin); err != nil {
		return named(err)
	}
	if err := applyInside(ctx, c, o, s); err != nil {
		_ = c.run(sqlRollback) // the error that led here is the one to tell
		return named(err)
	}
	if err := c.run(sqlCommit); err != nil {
		return errors.Join(named(err), c.run(sqlRollback))
	}
	return o.fault(s.point("committed"))
}

func applyInside(ctx context.Context, c *conn, o *Options, s step) error {
	_, err := c.text(ctx, "SELECT name FROM migration WHERE line = $1 AND version = $2",
		driver.NamedValue{Ordinal: 1, Value: s.line}, driver.NamedValue{Ordinal: 2, Value: int64(s.version)})
	if !errors.Is(err, errNoRow) {
		return err
	}
	if err := c.script(ctx, s.text); err != nil {
		return err
	}
	if err := o.fault(s.point("applied")); err != nil {
		return err
	}
	const insert = "INSERT INTO migration (line, version, name, sha256, applied_at) VALUES ($1, $2, $3, $4, $5)"
	if _, err := c.exec(insert, []any{s.line, s.version, s.name, s.sum, Micros(o.Now())}); err != nil {
		return err
	}
	if err := foreignKeyCheck(ctx, queryOwn(c)); err != nil {
		return err
	}
	return o.fault(s.point("recorded"))
}

// script runs the statements of a file; it may not end the transaction.
func (c *conn) script(ctx context.Context, text string) error {
	c.rules.mode, c.rules.denied = modeMigrate, ""
	defer func() { c.rules.mode = modeOwn }()
	_, err := c.inner.ExecContext(ctx, text, nil)
	return c.rules.explain(err)
}

// applied reads which migrations the database has.
func applied(ctx context.Context, c *conn) (map[key]row, error) {
	r, err := c.QueryContext(ctx, "SELECT line, version, name, sha256, applied_at FROM migration ORDER BY line, version", nil)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	defer r.Close()
	done := make(map[key]row)
	dest := make([]driver.Value, 5)
	for {
		if err := r.Next(dest); errors.Is(err, io.EOF) {
			return done, nil
		} else if err != nil {
			return nil, fmt.Errorf("read migrations: %w", err)
		}
		k := key{line: string(dest[0].([]byte)), version: int(dest[1].(int64))}
		done[k] = row{name: string(dest[2].([]byte)), sum: string(dest[3].([]byte)), at: FromMicros(dest[4].(int64))}
	}
}

// row is a migration the database has.
type row struct {
	name, sum string
	at        time.Time
}
