package vault

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"countersign/internal/id"
	"countersign/internal/store"
)

// ErasedFile is the name of the list of what was erased, beside the database:
// one tenant and run a line. A database that is put back from a backup has
// what was erased since; Open erases it again. Keep the file when you restore.
const ErasedFile = "vault.erased"

// Intend writes durably that the run's values are to be erased, before Erase
// does it: whatever happens in between, the next Open does it again.
func (v *Vault) Intend(tenant string, run id.Run) (err error) {
	f, err := os.OpenFile(filepath.Join(v.dir, ErasedFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("note an erasure: %w", err)
	}
	_, err = fmt.Fprintf(f, "%s %s\n", tenant, run)
	if err = errors.Join(err, f.Sync(), f.Close(), syncFolder(v.dir)); err != nil {
		return fmt.Errorf("note an erasure: %w", err)
	}
	return nil
}

// Erase destroys the run's key, its salt and its values, and returns how many
// values there were. What was committed to stays committed to, and nobody can
// find out any more what it was. Call store.DB.Shred once it is committed.
func (v *Vault) Erase(ctx context.Context, tx *store.Tx, tenant string, run id.Run) (values int64, err error) {
	values, err = tx.Exec(ctx, "DELETE FROM sealed_value WHERE tenant = $1 AND run = $2", tenant, string(run))
	if err == nil {
		_, err = tx.Exec(ctx, "DELETE FROM data_key WHERE tenant = $1 AND run = $2", tenant, string(run))
	}
	if err != nil {
		return 0, fmt.Errorf("erase the values of run %s: %w", run, err)
	}
	return values, nil
}

// replay erases again whatever the list names and the database still has.
func (v *Vault) replay(ctx context.Context, db *store.DB) error {
	f, err := os.Open(filepath.Join(v.dir, ErasedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read what was erased: %w", err)
	}
	defer f.Close()
	again := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		tenant, run, ok := strings.Cut(lines.Text(), " ")
		if !ok {
			continue // the end of a line that a crash cut off: its erasure was never answered
		}
		there, err := v.has(ctx, db, tenant, run)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		again = true
		err = db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
			_, err := v.Erase(ctx, tx, tenant, id.Run(run))
			return err
		})
		if err != nil {
			return err
		}
	}
	if again {
		return db.Shred(ctx)
	}
	return nil
}

func (v *Vault) has(ctx context.Context, db *store.DB, tenant, run string) (there bool, err error) {
	err = db.View(ctx, func(ctx context.Context, q store.Querier) error {
		return q.QueryRow(ctx, "SELECT count(*) > 0 FROM data_key WHERE tenant = $1 AND run = $2", tenant, run).Scan(&there)
	})
	return there, err
}
