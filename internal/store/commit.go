package store

import (
	"fmt"
	"time"
)

// finish commits the group or rolls it back, and tells everyone in it.
func (w *writer) finish() {
	worked := time.Now()
	w.conn.rules.mode, w.conn.rules.tx = modeOwn, nil
	outcome, hook := w.broken, Tx{hook: true}
	if outcome == nil && w.wrote {
		outcome = w.commit(&hook)
	}
	w.rollback()
	w.stats.count(w, worked, outcome)
	w.answer(outcome, hook.after)
}

// commit makes the group durable. An error means that nothing of it is, but
// for FaultAfterCommit, where everything is and only the answer was lost.
func (w *writer) commit(hook *Tx) error {
	if err := w.callHooks(hook); err != nil {
		return fmt.Errorf("before commit: %w", err)
	}
	if err := w.storeClock(); err != nil {
		return named(err)
	}
	if err := w.opts.fault(FaultBeforeCommit); err != nil {
		return err
	}
	if err := w.conn.run(sqlCommit); err != nil {
		return w.commitFailed(err)
	}
	w.begun, w.dirty = false, true
	return w.opts.fault(FaultAfterCommit)
}

// commitFailed tells failures that certainly committed nothing from those of
// unknown outcome. After an I/O error pages may or may not have reached the
// disk, and syncing again proves nothing: the process must stop and read the
// file anew.
func (w *writer) commitFailed(err error) error {
	err = fmt.Errorf("commit: %w", err)
	switch primary(err) {
	case codeFull, codeBusy, codeConstraint:
		return named(err)
	}
	w.dead, w.begun = err, false
	w.opts.OnFatal(err)
	return err
}

// callHooks runs the BeforeCommit functions as one more transaction.
func (w *writer) callHooks(tx *Tx) error {
	w.hooksMu.RLock()
	hooks := w.hooks
	w.hooksMu.RUnlock()
	for i := range hooks {
		tx.w, tx.ctx, tx.done = w, &w.scope, false
		if err := w.call(tx, hooks[i]); err != nil {
			return err
		}
	}
	return nil
}

// rollback ends the physical transaction if one is open. SQLite may have
// rolled it back by itself; then there is none, and that is an error to be
// passed over. If it truly could not, the next BEGIN says so.
func (w *writer) rollback() {
	if !w.begun {
		return
	}
	w.conn.closeRows()
	if err := w.conn.run(sqlRollback); err != nil {
		w.log.Warn("roll back", "error", err)
	}
	w.begun = false
}

// answer tells every submitter of the group and makes ready for the next.
func (w *writer) answer(outcome error, hookHints []func()) {
	for _, j := range w.group {
		if j.err == nil {
			j.err = outcome
		}
		j.tx.done = true
		if j.err == nil {
			w.hints.add(j.tx.after)
		}
		close(j.ready)
	}
	if outcome == nil {
		w.hints.add(hookHints)
	}
	w.last = len(w.group)
	clear(w.group)
	w.group, w.passed, w.wrote, w.broken = w.group[:0], 0, false, nil
}
