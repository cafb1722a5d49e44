package store

import (
	"context"
	"time"
)

// Update queues fn to the one writer and returns its true result: nil once
// the transaction is on disk, otherwise the error for which nothing of it
// remains. Its commit may be shared with others; their failure is not its.
//
// The end of ctx ends only the waiting, and only while fn has not started. fn
// must not wait, send or render: every other writer waits for it. It returns
// ErrBusyQueue, ErrBusy, ErrDiskFull, ErrNested, ErrUnaudited, ErrLeakedRows,
// ErrClosed, *PanicError, or what fn returned.
func (db *DB) Update(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	if db.inside(ctx) {
		return ErrNested
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{
		scope:  scope{values: ctx, db: db},
		fn:     fn,
		queued: time.Now(),
		ready:  make(chan struct{}),
	}
	if err := db.submit(j); err != nil {
		return err
	}
	select {
	case <-j.ready:
		return j.err
	case <-ctx.Done():
	}
	if j.abandon() {
		return ctx.Err()
	}
	<-j.ready
	return j.err
}

// submit puts the job into the queue if there is room.
func (db *DB) submit(j *job) error {
	db.closing.RLock()
	defer db.closing.RUnlock()
	if db.closed {
		return ErrClosed
	}
	select {
	case db.writer.queue <- j:
		return nil
	default:
		db.writer.stats.refuse()
		return ErrBusyQueue
	}
}

// BeforeCommit registers fn to run once in every physical commit in which a
// transaction succeeded, after the last of them. Its error rolls all of them
// back. Functions run in the order they were registered; register them before
// the first Update.
func (db *DB) BeforeCommit(fn func(ctx context.Context, tx *Tx) error) {
	db.writer.addHook(fn)
}
