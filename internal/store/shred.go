package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// How often Shred tries to have the log to itself, and how long it waits in
// between.
const (
	shredTries = 50
	shredPause = 100 * time.Millisecond
)

// Shred makes what was deleted unreadable on disk: freed space in the database
// is overwritten as it is freed (secure_delete), and this empties the
// write-ahead log, which holds pages as they were. It waits for readers, a few
// seconds at most, and returns ErrBusy if one stays. Copies made earlier, and
// what a file system or an SSD keeps of overwritten blocks, are out of reach.
func (db *DB) Shred(ctx context.Context) error {
	c, err := dial(ctx, db.opts.Path, roleWriter)
	if err != nil {
		return fmt.Errorf("shred: %w", err)
	}
	defer c.shut()
	for range shredTries {
		busy, err := c.text(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
		if err == nil && busy == "0" {
			return nil
		}
		if err != nil && primary(err) != codeBusy {
			return fmt.Errorf("shred: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(shredPause):
		}
	}
	return because(ErrBusy, errors.New("a reader kept the write-ahead log in use"))
}
