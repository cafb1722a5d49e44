package store

import (
	"context"
	"sync/atomic"
	"time"
)

// The states of a job. The submitter may abandon it only while it is queued;
// the writer claims it before it runs. One compare-and-swap decides.
const (
	jobQueued int32 = iota
	jobClaimed
	jobAbandoned
)

// job is a transaction on its way through the queue.
type job struct {
	scope
	fn     func(ctx context.Context, tx *Tx) error
	tx     Tx
	state  atomic.Int32
	queued time.Time
	err    error
	ready  chan struct{} // closed when err is final
}

func (j *job) claim() bool { return j.state.CompareAndSwap(jobQueued, jobClaimed) }

func (j *job) abandon() bool { return j.state.CompareAndSwap(jobQueued, jobAbandoned) }

// scope is the context a transaction's function gets: the values of the
// submitter's, never its end, and the mark that a transaction is open.
type scope struct {
	values context.Context
	db     *DB
}

type scopeKey struct{}

func (scope) Deadline() (time.Time, bool) { return time.Time{}, false }
func (scope) Done() <-chan struct{}       { return nil }
func (scope) Err() error                  { return nil }
func (s scope) Value(key any) any {
	if key == (scopeKey{}) {
		return s.db
	}
	return s.values.Value(key)
}

// inside reports whether ctx comes from an open transaction or view of db.
func (db *DB) inside(ctx context.Context) bool { return ctx.Value(scopeKey{}) == any(db) }
