package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Querier is what can only read: a view, or a transaction that is asked to.
// TEXT scans into strings, types of that kind and json.RawMessage; into an
// any it scans as []byte.
type Querier interface {
	Query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) *sql.Row
}

// Tx is one logical transaction. It is valid until its function returns and
// belongs to one goroutine. The contexts its methods take are there for
// Querier's sake: a transaction that has started is not cut short.
type Tx struct {
	w         *writer
	ctx       context.Context
	now       time.Time
	suspect   bool
	timed     bool
	hook      bool // the one BeforeCommit functions get
	wrote     bool
	audited   bool
	done      bool
	guarded   string // a guarded table that was changed
	fatal     error  // after this the whole group is rolled back
	undoClock *clock // what AcceptClock replaced
	results   []*sql.Rows
	after     []func()
}

// Query runs a statement that returns rows. Close them, or read them to the
// end, before the transaction ends: otherwise it is refused with ErrLeakedRows.
func (tx *Tx) Query(_ context.Context, query string, args ...any) (*sql.Rows, error) {
	if tx.done {
		return nil, ErrTxDone
	}
	r, err := tx.w.conn.pinned.QueryContext(tx.ctx, query, args...)
	if err != nil {
		return nil, tx.failed(err)
	}
	tx.results = append(tx.results, r)
	return r, nil
}

// QueryRow runs a statement that returns at most one row; scan it. No row is
// ErrNotFound.
func (tx *Tx) QueryRow(_ context.Context, query string, args ...any) *sql.Row {
	ctx := tx.ctx
	if tx.done {
		ctx = ended{ctx}
	}
	return tx.w.conn.pinned.QueryRowContext(ctx, query, args...)
}

// Exec runs a statement and returns the number of rows it changed. The
// statement is prepared once per text. Times go in as Micros, JSON as TEXT.
func (tx *Tx) Exec(_ context.Context, query string, args ...any) (int64, error) {
	if tx.done {
		return 0, ErrTxDone
	}
	n, err := tx.w.conn.exec(query, args)
	if err != nil {
		return 0, tx.failed(err)
	}
	return n, nil
}

// ExecOne is compare-and-swap: it runs a statement that must change exactly
// one row, otherwise it returns ErrConflict.
func (tx *Tx) ExecOne(ctx context.Context, query string, args ...any) error {
	n, err := tx.Exec(ctx, query, args...)
	if err != nil {
		return err
	}
	if n != 1 {
		return fmt.Errorf("%w (%d rows changed by %s)", ErrConflict, n, excerpt(query))
	}
	return nil
}

// AfterCommit has fn called once the transaction is on disk, in the order of
// the commits, outside the writer. It is a hint: a crash or a failure in
// between loses it.
func (tx *Tx) AfterCommit(fn func()) { tx.after = append(tx.after, fn) }

// Audited says that the transaction holds its audit entry.
func (tx *Tx) Audited() { tx.audited = true }

// failed keeps the errors after which the group cannot be committed and names
// those a person can do something about.
func (tx *Tx) failed(err error) error {
	err = named(err)
	switch primary(err) {
	case codeFull, codeIOErr, codeCorrupt, codeNoMem:
		tx.fatal = err
	}
	return err
}

// end closes the transaction and decides whether it may be committed.
func (tx *Tx) end(err error) error {
	tx.done = true
	leaked := tx.w.conn.closeRows() > 0
	for _, r := range tx.results {
		_ = r.Close() // its statement is closed already; this frees what database/sql holds
	}
	switch {
	case tx.fatal != nil:
		return tx.fatal
	case err != nil:
		return err
	case leaked:
		return ErrLeakedRows
	case tx.guarded != "" && !tx.audited && !tx.hook:
		return fmt.Errorf("%w (table %s)", ErrUnaudited, tx.guarded)
	}
	return nil
}

// ended is a context that is over because its transaction is.
type ended struct{ context.Context }

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (ended) Done() <-chan struct{} { return closedChan }
func (ended) Err() error            { return ErrTxDone }
