package store

import (
	"context"
	"database/sql/driver"
)

// Limits the tests reach.
const (
	StatementsMax = statementsMax
	ReaderCount   = readerCount
	WALMax        = walMax
	HintsMax      = hintsMax
	CopiesMax     = copiesMax
	ReaderWaitMax = readerWaitMax
)

// RunOnWriter runs a statement of the store's own on the writer's connection.
func RunOnWriter(db *DB, text string) error {
	return db.Update(context.Background(), func(_ context.Context, tx *Tx) error {
		return tx.w.conn.owned(func() error { return tx.w.conn.run(text) })
	})
}

func (c *conn) owned(fn func() error) error {
	c.rules.mode = modeOwn
	defer func() { c.rules.mode = modeTx }()
	return fn()
}

// EveryConnection calls fn for the writer's connection and for each reader's.
func EveryConnection(db *DB, fn func(who string, text func(query string) (string, error))) {
	query := func(c *conn) func(string) (string, error) {
		return func(q string) (string, error) { return c.text(context.Background(), q) }
	}
	_ = db.Update(context.Background(), func(_ context.Context, tx *Tx) error {
		return tx.w.conn.owned(func() error { fn("writer", query(tx.w.conn)); return nil })
	})
	var taken []*conn
	for range readerCount {
		r := <-db.readers
		taken = append(taken, r)
		fn("reader", query(r))
	}
	for _, r := range taken {
		db.readers <- r
	}
}

// DialWith opens and verifies a writing connection under a DSN made worse.
func DialWith(path string, worse func(dsn string) string) error {
	defer func() { spoil = func(dsn string) string { return dsn } }()
	spoil = worse
	c, err := dial(context.Background(), path, roleWriter)
	if err != nil {
		return err
	}
	return c.shut()
}

// Prepared is the number of statements the writer keeps.
func Prepared(db *DB) (n int) {
	_ = db.Update(context.Background(), func(_ context.Context, tx *Tx) error { n = len(tx.w.conn.stmts); return nil })
	return n
}

// PreparedByReaders is the largest number of statements a reader keeps.
func PreparedByReaders(db *DB) (n int) {
	for range readerCount {
		r := <-db.readers
		n = max(n, len(r.stmts)+len(r.own))
		db.readers <- r
	}
	return n
}

// FailCommit makes every later COMMIT of the writer fail with the result code.
func FailCommit(db *DB, code int) { failStatement(db, modeOwn, sqlCommit, code) }

// FailStatement does so with a statement of transactions.
func FailStatement(db *DB, text string, code int) { failStatement(db, modeTx, text, code) }

func failStatement(db *DB, m mode, text string, code int) {
	_ = db.Update(context.Background(), func(_ context.Context, tx *Tx) error {
		c := tx.w.conn
		c.rules.mode = m
		defer func() { c.rules.mode = modeTx }()
		s, err := c.prepare(text)
		if err == nil {
			s.inner = failing{s.inner, code}
			c.release(s)
		}
		return err
	})
}

type failing struct {
	innerStmt
	code int
}

func (f failing) ExecContext(context.Context, []driver.NamedValue) (driver.Result, error) {
	return nil, resultCode(f.code)
}

type resultCode int

func (resultCode) Error() string { return "made up by the test" }
func (c resultCode) Code() int   { return int(c) }

// PutOrphan writes a page without its folder, past the foreign keys.
func PutOrphan(db *DB) error {
	c, err := dial(context.Background(), db.opts.Path, roleWriter)
	if err != nil {
		return err
	}
	defer c.shut()
	if err := c.run("PRAGMA foreign_keys=OFF"); err != nil {
		return err
	}
	return c.run("INSERT INTO page (id, folder) VALUES (1, 99)")
}

// OnFS has folders seem to lie on a file system of that kind.
func OnFS(kind uint32) (restore func()) {
	was := fsKind
	fsKind = func(string) (uint32, error) { return kind, nil }
	return func() { fsKind = was }
}
