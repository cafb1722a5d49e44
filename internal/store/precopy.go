package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
)

// queryOwn is the query function of a connection, in the shape of Querier's.
func queryOwn(c *conn) func(context.Context, string, ...any) (*sql.Rows, error) {
	return c.pinned.QueryContext
}

// copiesMax bounds the copies of one upgrade that are told apart by a number.
const copiesMax = 20

// copyBefore copies the database beside itself before its first migration
// due. A copy a killed attempt left behind is used again if nothing was
// committed since, so that a failing upgrade that is retried does not fill
// the disk.
func copyBefore(ctx context.Context, c *conn, o *Options, first step) error {
	mark, err := c.integer("SELECT mark_us FROM store_clock WHERE id = 1")
	if err != nil {
		return err
	}
	base := fmt.Sprintf("%s.before-%s-%04d", o.Path, first.line, first.version)
	for n := 1; n <= copiesMax; n++ {
		name := base
		if n > 1 {
			name = fmt.Sprintf("%s.%d", base, n)
		}
		if _, err := os.Lstat(name); err != nil {
			o.Logger.Info("copying the database before it is migrated", "copy", name, "first", first.String())
			copied := copyDatabase(ctx, o, name)
			if _, err := os.Lstat(name); copied == nil || err != nil {
				return copied
			}
			// Another process that opens the same database was faster: its
			// copy is looked at like any that is there already.
		}
		if had, err := copyMark(ctx, name); err == nil && had == mark {
			return nil
		}
	}
	return fmt.Errorf("there are %d copies %s* already; move them away", copiesMax, base)
}

// openCopy opens a file nobody writes to, without making files beside it.
func openCopy(path string) (*sql.DB, error) {
	q := url.Values{"mode": {"ro"}, "immutable": {"1"}, "_query_only": {"1"}, "_defensive": {"1"}, "_dqs": {"0"}}
	return sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+q.Encode())
}

func copyMark(ctx context.Context, path string) (mark int64, err error) {
	db, err := openCopy(path)
	if err != nil {
		return 0, err
	}
	err = db.QueryRowContext(ctx, "SELECT mark_us FROM store_clock WHERE id = 1").Scan(&mark)
	return mark, errors.Join(err, db.Close())
}

// checkCopy refuses a copy that cannot be read back.
func checkCopy(ctx context.Context, path string) error {
	db, err := openCopy(path)
	if err != nil {
		return err
	}
	rows, err := db.QueryContext(ctx, "PRAGMA quick_check(10)")
	if err == nil {
		err = verdict(rows)
	}
	return errors.Join(err, db.Close())
}

// CheckBackup refuses a file that is no database of this program's family, is
// damaged, or lacks what lies in a write-ahead log beside it. It changes
// nothing; whether the database is of a newer program, Open says.
func CheckBackup(ctx context.Context, path string) error {
	if info, err := os.Stat(path); err != nil {
		return fmt.Errorf("read the backup: %w", err)
	} else if !info.Mode().IsRegular() {
		return fmt.Errorf("read the backup: %s is not a file", path)
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		return fmt.Errorf("%s has a write-ahead log beside it, so it is a database and no backup; make one with console backup", path)
	}
	if err := setUpDriver(); err != nil {
		return err
	}
	if err := checkCopy(ctx, path); err != nil {
		return fmt.Errorf("%s is not a backup that can be restored: %w", path, err)
	}
	if _, err := copyMark(ctx, path); err != nil {
		return fmt.Errorf("%s is not a backup of a console: %w", path, err)
	}
	return nil
}
