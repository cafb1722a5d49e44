package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

//go:embed migrations/*.sql
var migrations embed.FS

// ownLine is applied before all others.
var ownLine = Line{Name: "store", FS: migrations, Dir: "migrations"}

// DB is an open database. Its methods may be called from any goroutine.
type DB struct {
	opts    Options
	writer  *writer
	readers chan *conn

	closing sync.RWMutex // held for writing while closed is set
	closed  bool
}

// Open opens or creates the database: it checks the file (quick_check),
// copies it if migrations are due, migrates, and verifies on every connection
// that its settings took hold. It refuses a database of a newer program with
// ErrNewer.
func Open(ctx context.Context, o Options) (_ *DB, err error) {
	o.setDefaults()
	if o.Path, err = filepath.Abs(o.Path); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if err := setUpDriver(); err != nil {
		return nil, err
	}
	if err := refuseNetwork(filepath.Dir(o.Path)); err != nil {
		return nil, err
	}
	if err := createFile(o.Path); err != nil {
		return nil, err
	}
	db := &DB{opts: o, readers: make(chan *conn, readerCount)}
	w, err := openWriter(ctx, &db.opts)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", o.Path, err)
	}
	if err := db.openReaders(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", o.Path, err), w.conn.shut())
	}
	if err := w.learnClock(); err != nil {
		return nil, errors.Join(err, db.shutReaders(len(db.readers)), w.conn.shut())
	}
	db.writer = w
	w.scope = scope{values: context.Background(), db: db}
	go w.hints.run()
	go w.run()
	return db, nil
}

// createFile makes an empty file only we can read; SQLite gives its side
// files the same permissions.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("open database: %s is a directory or device, not a file", path)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return syncDir(filepath.Dir(path))
}

// openWriter connects, checks and migrates.
func openWriter(ctx context.Context, o *Options) (*writer, error) {
	c, err := dialWriter(ctx, o.Path)
	if err != nil {
		return nil, err
	}
	c.rules = &rules{guarded: guardedTables(o.Lines), fault: o.Fault}
	if err := prepareFile(ctx, c, o); err != nil {
		return nil, errors.Join(err, c.shut())
	}
	w := &writer{
		opts: o, log: o.Logger, path: o.Path, conn: c,
		queue: make(chan *job, o.MaxQueue),
		hints: newHints(o.Logger),
		ended: make(chan struct{}),
		group: make([]*job, 0, o.MaxBatch),
	}
	w.stats.init()
	return w, nil
}

func prepareFile(ctx context.Context, c *conn, o *Options) error {
	if err := c.inner.RegisterAuthorizer(c.rules.authorize); err != nil {
		return fmt.Errorf("watch statements: %w", err)
	}
	if err := c.check(ctx, "PRAGMA quick_check(10)"); err != nil {
		return err
	}
	return migrate(ctx, c, o)
}

// dialWriter opens the writing connection. Two processes that create a
// database at once may find it locked while one switches it to WAL, which
// SQLite does not wait for; so we do.
func dialWriter(ctx context.Context, path string) (*conn, error) {
	deadline := time.Now().Add(5 * time.Second)
	for {
		c, err := dial(ctx, path, roleWriter)
		if err == nil || primary(err) != codeBusy || time.Now().After(deadline) {
			return c, named(err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// openReaders opens them all, so that a bad setting fails now.
func (db *DB) openReaders(ctx context.Context) error {
	for range readerCount {
		r, err := dial(ctx, db.opts.Path, roleReader)
		if err != nil {
			return errors.Join(err, db.shutReaders(len(db.readers)))
		}
		db.readers <- r
	}
	return nil
}

func (db *DB) shutReaders(n int) (err error) {
	for range n {
		if r := <-db.readers; r != nil {
			err = errors.Join(err, r.shut())
		}
	}
	return err
}

// Close refuses new work, lets what is queued finish, waits for open views
// and runs the last AfterCommit functions. It may be called twice; it must
// not be called from inside a transaction, a view or an AfterCommit function.
func (db *DB) Close() error {
	db.closing.Lock()
	if db.closed {
		db.closing.Unlock()
		<-db.writer.ended
		return nil
	}
	db.closed = true
	close(db.writer.queue)
	db.closing.Unlock()

	<-db.writer.ended
	db.writer.hints.close()
	err := db.shutReaders(readerCount)
	close(db.readers)
	if err = errors.Join(err, db.writer.conn.shut()); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}

func guardedTables(lines []Line) map[string]bool {
	m := make(map[string]bool)
	for _, l := range lines {
		for _, table := range l.Guarded {
			m[table] = true
		}
	}
	return m
}
