package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// CheckIntegrity reads the whole database and reports damage: pages, indexes,
// constraints and foreign keys. It takes time in proportion to the file.
func (db *DB) CheckIntegrity(ctx context.Context) error {
	return db.View(ctx, func(ctx context.Context, q Querier) error {
		rows, err := q.Query(ctx, "PRAGMA integrity_check(10)")
		if err != nil {
			return fmt.Errorf("check integrity: %w", err)
		}
		if err := verdict(rows); err != nil {
			return err
		}
		return foreignKeyCheck(ctx, q.Query)
	})
}

// check runs quick_check or integrity_check on a connection of our own.
func (c *conn) check(ctx context.Context, pragma string) error {
	rows, err := c.pinned.QueryContext(ctx, pragma)
	if err != nil {
		return damaged(err)
	}
	return verdict(rows)
}

func verdict(rows *sql.Rows) error {
	defer rows.Close()
	var faults []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return err
		}
		if line != "ok" {
			faults = append(faults, line)
		}
	}
	if err := rows.Err(); err != nil {
		return damaged(err)
	}
	if len(faults) > 0 {
		return damaged(errors.New(strings.Join(faults, "; ")))
	}
	return nil
}

func damaged(err error) error {
	return fmt.Errorf("the database file is damaged; stop, keep it as evidence and restore a backup: %w", err)
}

// foreignKeyCheck reports the first rows that point to nothing.
func foreignKeyCheck(ctx context.Context, query func(context.Context, string, ...any) (*sql.Rows, error)) error {
	rows, err := query(ctx, "PRAGMA foreign_key_check")
	if err != nil {
		return fmt.Errorf("check foreign keys: %w", err)
	}
	defer rows.Close()
	const most = 10
	var faults []string
	for rows.Next() && len(faults) < most {
		var table, parent string
		var rowid, key sql.NullInt64
		if err := rows.Scan(&table, &rowid, &parent, &key); err != nil {
			return fmt.Errorf("check foreign keys: %w", err)
		}
		faults = append(faults, fmt.Sprintf("%s row %d points to a missing %s", table, rowid.Int64, parent))
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("check foreign keys: %w", err)
	}
	if len(faults) > 0 {
		return fmt.Errorf("foreign keys are violated: %s", strings.Join(faults, "; "))
	}
	return nil
}
