package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"countersign/internal/problem"
)

// Backup writes a consistent copy of everything committed to dst: one file
// that can be opened by itself. Writers go on meanwhile. The copy is checked
// and on disk before it gets its name; an existing dst is refused and left as
// it is. Do not copy the database file by other means: what is in its -wal
// file would be missing.
func (db *DB) Backup(ctx context.Context, dst string) error {
	db.closing.RLock()
	closed := db.closed
	db.closing.RUnlock()
	if closed {
		return ErrClosed
	}
	return copyDatabase(ctx, &db.opts, dst)
}

func errExists(dst string) error {
	return problem.New(problem.Conflict, "file_exists", "The file %s exists already and was left as it is. Name another one.", dst)
}

func copyDatabase(ctx context.Context, o *Options, dst string) (err error) {
	if _, err := os.Lstat(dst); err == nil {
		return errExists(dst)
	}
	temp, err := os.CreateTemp(filepath.Dir(dst), "."+filepath.Base(dst)+".partial-*") // mode 0600
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	defer os.Remove(temp.Name())
	if err := temp.Close(); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	if err := vacuumInto(ctx, o.Path, temp.Name()); err != nil {
		return fmt.Errorf("back up: %w", named(err))
	}
	if err := syncFile(temp.Name()); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	if err := o.fault(FaultBackup); err != nil {
		return err
	}
	return publish(temp.Name(), dst)
}

// vacuumInto copies through a connection of its own, so that neither the
// writer nor a reader is held up, and checks the copy.
func vacuumInto(ctx context.Context, src, dst string) error {
	c, err := dial(ctx, src, roleCopier)
	if err != nil {
		return err
	}
	_, err = c.inner.ExecContext(ctx, "VACUUM INTO $1", []driver.NamedValue{{Ordinal: 1, Value: dst}})
	if err = errors.Join(err, c.shut()); err != nil {
		return err
	}
	return checkCopy(ctx, dst)
}

// publish gives the finished file its name; a link, unlike a rename, never
// replaces what is there.
func publish(temp, dst string) error {
	err := os.Link(temp, dst)
	if errors.Is(err, fs.ErrExist) {
		return errExists(dst)
	}
	if err != nil { // a file system without links
		if err := os.Rename(temp, dst); err != nil {
			return fmt.Errorf("back up: %w", err)
		}
	}
	return syncDir(filepath.Dir(dst))
}
