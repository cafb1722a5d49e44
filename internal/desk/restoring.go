package desk

import (
	"context"
	"fmt"

	"countersign/internal/audit"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/store"
)

// restoredRemark is what a request says that waited in a restored backup.
const restoredRemark = "The database was put back from a backup. Votes, comments and more time that were given after the backup are not here any more; this request still waits. Its run goes on once somebody resumes it."

// Restored begins a new epoch in a database that was put back from a backup:
// it is recorded in every log, every open run stops until a person resumes it,
// and every request that waits says so. kept is the heads known before. It
// returns how many runs stopped. The desk must not be started. Problem:
// forbidden.
func (d *Desk) Restored(ctx context.Context, p identity.Principal, kept map[string]string) (runs int, err error) {
	if err := require(p, capAdmin, "restore a backup"); err != nil {
		return 0, err
	}
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		by := d.entry(p, audit.Entry{})
		if err := d.log.NewEpoch(ctx, tx, by.Actor, by.Channel, kept); err != nil {
			return fmt.Errorf("begin a new epoch: %w", err)
		}
		stopped, err := d.engine.Restore(ctx, tx)
		runs = len(stopped)
		if err != nil {
			return err
		}
		return d.remarkWaiting(ctx, tx, stopped)
	})
	return runs, err
}

// remarkWaiting adds the remark to every request of the runs that waits.
func (d *Desk) remarkWaiting(ctx context.Context, tx *store.Tx, runs []id.Run) error {
	for _, run := range runs {
		waiting, err := d.book.PendingOf(ctx, tx, Tenant, run)
		if err != nil {
			return err
		}
		for _, request := range waiting {
			if err := d.book.Comment(ctx, tx, Tenant, request, "", "console restore", restoredRemark); err != nil {
				return err
			}
		}
	}
	return nil
}
