package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"countersign/internal/problem"
)

// errReaders refuses a view when all readers stay taken.
var errReaders = problem.New(problem.Unavailable, "readers_busy", "Too many pages are being read at once. Try again in a moment.")

// View runs fn on one snapshot of what is committed. The snapshot ends with
// fn: load, then stream or render after it. fn must not open an Update or
// another View (ErrNested) and must close its results (ErrLeakedRows). The end
// of ctx interrupts it.
func (db *DB) View(ctx context.Context, fn func(ctx context.Context, q Querier) error) error {
	if db.inside(ctx) {
		return ErrNested
	}
	r, err := db.takeReader(ctx)
	if err != nil {
		return err
	}
	sound := false // a panic of fn leaves the reader to be replaced
	defer func() { db.giveBack(r, sound) }()
	if err := r.run(sqlBeginRead); err != nil {
		return named(fmt.Errorf("begin view: %w", err))
	}
	v := &view{ctx: ctx, conn: r}
	err = fn(context.WithValue(ctx, scopeKey{}, db), v)
	leaked, endErr := v.end()
	sound = endErr == nil
	switch {
	case err != nil:
		return named(err)
	case endErr != nil:
		return fmt.Errorf("end view: %w", endErr)
	case leaked:
		return ErrLeakedRows
	}
	return nil
}

const sqlBeginRead = "BEGIN"

// view is the Querier of one View.
type view struct {
	ctx     context.Context
	conn    *conn
	results []*sql.Rows
	done    bool
}

func (v *view) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if v.done {
		return nil, ErrTxDone
	}
	r, err := v.conn.pinned.QueryContext(ctx, query, args...)
	if err == nil {
		v.results = append(v.results, r)
	}
	return r, err
}

func (v *view) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	if v.done {
		ctx = ended{ctx}
	}
	return v.conn.pinned.QueryRowContext(ctx, query, args...)
}

// end closes the snapshot. ROLLBACK ends it even with results open, which
// COMMIT would not. It holds the lock of database/sql, because the end of a
// context closes results from another goroutine.
func (v *view) end() (leaked bool, err error) {
	v.done = true
	err = v.conn.pinned.Raw(func(any) error {
		leaked = v.conn.closeRows() > 0
		return v.conn.run(sqlRollback)
	})
	for _, r := range v.results {
		_ = r.Close()
	}
	return leaked, err
}

// takeReader waits for a reader. A nil in the pool stands for one that was
// given up and is opened anew.
func (db *DB) takeReader(ctx context.Context) (*conn, error) {
	var r *conn
	var open bool
	select {
	case r, open = <-db.readers:
	default:
		limit := time.NewTimer(readerWaitMax)
		defer limit.Stop()
		select {
		case r, open = <-db.readers:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-limit.C:
			return nil, errReaders
		}
	}
	if !open {
		return nil, ErrClosed
	}
	if r != nil {
		return r, nil
	}
	r, err := dial(ctx, db.opts.Path, roleReader)
	if err != nil {
		db.giveBack(nil, true)
		return nil, named(fmt.Errorf("open a reader: %w", err))
	}
	return r, nil
}

// giveBack returns a reader, or a nil in its place.
func (db *DB) giveBack(r *conn, sound bool) {
	if r != nil && !sound {
		_ = r.shut()
		r = nil
	}
	db.readers <- r
}
