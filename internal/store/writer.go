package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
)

// Statements of the writer. Savepoints never nest, so one name is enough.
const (
	sqlBegin      = "BEGIN IMMEDIATE"
	sqlCommit     = "COMMIT"
	sqlRollback   = "ROLLBACK"
	sqlSavepoint  = "SAVEPOINT logical"
	sqlRelease    = "RELEASE logical"
	sqlRollbackTo = "ROLLBACK TO logical"
)

// errGoexit is told to everyone in the group when a function ended the
// writer's goroutine (a test that calls FailNow inside a transaction).
var errGoexit = errors.New("store: a transaction's function ended its goroutine; everything in its group was rolled back")

// writer owns the one connection that writes. All fields below conn belong to
// its goroutine.
type writer struct {
	opts  *Options
	log   *slog.Logger
	queue chan *job
	hints *hints
	stats stats
	ended chan struct{}
	path  string
	scope scope // what BeforeCommit functions run in

	hooksMu sync.RWMutex // protects hooks
	hooks   []func(ctx context.Context, tx *Tx) error

	conn    *conn
	begun   bool      // a physical transaction is open
	started time.Time // when the group began to run
	group   []*job    // claimed for this group, in order
	last    int       // how many there were in the group before
	passed  int       // how many of them may be committed
	wrote   bool      // one of those changed something
	broken  error     // why the group cannot be committed
	dead    error     // why nothing can be committed any more
	dirty   bool      // there were commits since the last checkpoint
	clock   clock

	given atomic.Int64 // the mark, for whoever reads without a transaction
}

func (w *writer) addHook(fn func(ctx context.Context, tx *Tx) error) {
	w.hooksMu.Lock()
	defer w.hooksMu.Unlock()
	w.hooks = append(w.hooks, fn)
}

// run is the writer's goroutine, until the queue is closed and empty.
func (w *writer) run() {
	clean := false
	defer func() {
		if !clean {
			w.broken = errGoexit
			w.finish()
			go w.run()
			return
		}
		close(w.ended)
	}()
	for j := w.next(); j != nil; j = w.next() {
		w.runGroup(j)
	}
	clean = true
}

// next waits for a job, and uses a quiet second for a checkpoint. It returns
// nil when the queue is closed and empty.
func (w *writer) next() *job {
	select {
	case j := <-w.queue:
		return j
	default:
	}
	if !w.dirty {
		return <-w.queue
	}
	idle := time.NewTimer(idleAfter)
	defer idle.Stop()
	select {
	case j := <-w.queue:
		return j
	case <-idle.C:
		w.checkpoint()
	}
	return <-w.queue
}

// more is the next job of this group, nil when it is full or nobody waits.
func (w *writer) more() *job {
	if len(w.group) >= w.opts.MaxBatch || time.Since(w.started) > w.opts.MaxWork || w.broken != nil {
		return nil
	}
	for range 2 {
		select {
		case j := <-w.queue:
			return j
		default:
		}
		if len(w.group) >= w.last {
			break
		}
		runtime.Gosched() // those just answered are about to come back: let them join
	}
	return nil
}

// runGroup runs first and whoever waits behind it, and commits them together.
func (w *writer) runGroup(first *job) {
	w.started = time.Now()
	for j := first; j != nil; j = w.more() {
		if j.claim() {
			w.group = append(w.group, j)
			w.runJob(j)
		}
	}
	w.finish()
}

// runJob runs one transaction. Only what follows a success needs a savepoint:
// before that, rolling back the whole is rolling back the one.
func (w *writer) runJob(j *job) {
	if err := w.begin(); err != nil {
		w.broken = err
		w.refuseWaiting(err)
		return
	}
	nested := w.passed > 0
	if nested {
		if err := w.conn.run(sqlSavepoint); err != nil {
			w.broken = fmt.Errorf("begin savepoint: %w", err)
			return
		}
	}
	j.tx.w, j.tx.ctx = w, &j.scope
	j.err = w.call(&j.tx, j.fn)
	w.broken = j.tx.fatal
	w.clock.fresh = false // the next may have been submitted after this group opened
	if j.err == nil {
		w.passed++
		w.wrote = w.wrote || j.tx.wrote
	} else if undo := j.tx.undoClock; undo != nil {
		w.clock = *undo
		w.given.Store(undo.mark)
	}
	if err := w.settle(nested, j.err); err != nil {
		w.broken = fmt.Errorf("end savepoint: %w", err)
	}
}

// begin opens the physical transaction if there is none.
func (w *writer) begin() error {
	if w.begun {
		return nil
	}
	if w.dead != nil {
		return because(ErrClosed, w.dead)
	}
	if err := w.conn.run(sqlBegin); err != nil {
		return named(fmt.Errorf("begin: %w", err))
	}
	w.begun = true
	return named(w.openClock())
}

// refuseWaiting gives everyone who waits now the same answer, so that they do
// not wait one timeout each behind another.
func (w *writer) refuseWaiting(err error) {
	for n := len(w.queue); n > 0; n-- {
		j := <-w.queue
		if j == nil {
			return
		}
		if j.claim() {
			j.err = err
			w.group = append(w.group, j)
		}
	}
}

// settle keeps or undoes what the last transaction did.
func (w *writer) settle(nested bool, failed error) error {
	switch {
	case w.broken != nil:
		return nil
	case failed == nil && nested:
		return w.conn.run(sqlRelease)
	case failed == nil:
		return nil
	case nested:
		return errors.Join(w.conn.run(sqlRollbackTo), w.conn.run(sqlRelease))
	}
	w.rollback()
	return nil
}

// call runs fn as a transaction's function and returns whether the
// transaction may be committed.
func (w *writer) call(tx *Tx, fn func(ctx context.Context, tx *Tx) error) error {
	rules := w.conn.rules
	rules.mode, rules.tx = modeTx, tx
	err := safely(tx, fn)
	rules.mode, rules.tx = modeOwn, nil
	if p, ok := errors.AsType[*PanicError](err); ok {
		w.log.Error("transaction panicked", "value", p.Value, "stack", string(p.Stack))
	}
	if err = tx.end(err); err == nil && tx.wrote {
		err = w.foreignKeys()
	}
	return err
}

func safely(tx *Tx, fn func(ctx context.Context, tx *Tx) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = newPanic(v)
		}
	}()
	return fn(tx.ctx, tx)
}

// foreignKeys refuses a transaction that leaves a deferred constraint
// violated: SQLite itself would only refuse the whole group at its commit.
func (w *writer) foreignKeys() error {
	open, _, err := w.conn.inner.Status(sqlite.DBStatusDeferredFKs, false)
	if err != nil {
		return fmt.Errorf("read foreign key state: %w", err)
	}
	if open != 0 {
		return errors.New("store: a deferred foreign key is violated")
	}
	return nil
}
