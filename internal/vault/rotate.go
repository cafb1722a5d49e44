package vault

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"countersign/internal/store"
)

// nextKeyFile is the key a rotation goes to, until its commit is known.
const nextKeyFile = KeyFile + ".next"

// rewrapBatch is how many keys of runs are wrapped anew in one transaction.
const rewrapBatch = 200

// Rotate replaces the outermost key by a new file, and the key of each tenant,
// of those given too, by a new version: everything the old file wrapped is
// wrapped anew in one transaction, in which record is called with the
// fingerprints of both. It returns how many keys of runs it moved to the new
// tenant keys, in transactions after it; Rewrap goes on where a death cut that
// short. No other process may have the folder open: hold its lock.
//
// A death at any instant leaves one of the two files in force: the new one
// lies beside the old until the commit is known, and the next Open finishes.
func (v *Vault) Rotate(ctx context.Context, db *store.DB, tenants []string, record func(ctx context.Context, tx *store.Tx, old, new string) error) (runs int64, err error) {
	next := random(keyBytes)
	if err := v.writeNext(next); err != nil {
		return 0, err
	}
	v.at("written")
	err = db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := v.moveTo(ctx, tx, next, tenants); err != nil {
			return err
		}
		return record(ctx, tx, fingerprint(v.outer), fingerprint(next))
	})
	if err != nil {
		return 0, fmt.Errorf("replace the vault's key: %w", err)
	}
	v.at("committed")
	if err := takeNext(v.dir); err != nil {
		return 0, err
	}
	v.at("renamed")
	if err := v.reload(ctx, db, next); err != nil {
		return 0, err
	}
	return v.Rewrap(ctx, db)
}

// writeNext writes the next key beside the one in force, and makes it durable.
func (v *Vault) writeNext(next []byte) (err error) {
	f, err := os.OpenFile(filepath.Join(v.dir, nextKeyFile), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the next vault key: %w", err)
	}
	_, err = f.WriteString(hex.EncodeToString(next) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close(), syncFolder(v.dir)); err != nil {
		return fmt.Errorf("write the next vault key: %w", err)
	}
	return nil
}

// takeNext puts the next key in the place of the one that was in force. Another
// process may have been faster.
func takeNext(dir string) error {
	err := os.Rename(filepath.Join(dir, nextKeyFile), filepath.Join(dir, KeyFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("take the next vault key: %w", err)
	}
	return syncFolder(dir)
}

// finishRotation takes the next key if the database is wrapped with it. One
// whose commit did not happen is left: it may be another process's, and the
// next rotation writes over it.
func finishRotation(dir, wrapping string) error {
	text, err := os.ReadFile(filepath.Join(dir, nextKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the next vault key: %w", err)
	}
	next, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(next) != keyBytes || fingerprint(next) != wrapping {
		return nil
	}
	return takeNext(dir)
}

// moveTo wraps with next what the present key wraps, keeps what equal things
// were told by, and gives every tenant a new key.
func (v *Vault) moveTo(ctx context.Context, tx *store.Tx, next []byte, tenants []string) error {
	for _, table := range []string{"tenant_key", "former_equal"} {
		if err := v.rewrapOuter(ctx, tx, table, next); err != nil {
			return err
		}
	}
	for _, tenant := range tenants {
		if err := v.keepEqual(ctx, tx, tenant, next); err != nil {
			return err
		}
	}
	return nil
}

// wrappedRow is one key that the outermost wraps.
type wrappedRow struct {
	tenant  string
	nr      int
	wrapped []byte
}

// numbers are the columns that number the keys of a tenant, by table.
var numbers = map[string]string{"tenant_key": "version", "former_equal": "nr"}

func (v *Vault) rewrapOuter(ctx context.Context, tx *store.Tx, table string, next []byte) error {
	all, err := wrappedRows(ctx, tx, "SELECT tenant, "+numbers[table]+", wrapped FROM "+table+" ORDER BY 1, 2")
	if err != nil {
		return err
	}
	newest := map[string]int{}
	for _, r := range all {
		context := v.outerPlace(table, r.tenant, r.nr)
		key, err := unshut(v.outer, r.wrapped, context)
		if err != nil {
			return fmt.Errorf("open key %d of tenant %s: %w", r.nr, r.tenant, err)
		}
		wrapped, err := shut(next, key, context)
		if err != nil {
			return err
		}
		err = tx.ExecOne(ctx, "UPDATE "+table+" SET wrapped = $1, outer_key = $2 WHERE tenant = $3 AND "+numbers[table]+" = $4", wrapped, fingerprint(next), r.tenant, r.nr)
		if err != nil {
			return err
		}
		newest[r.tenant] = max(newest[r.tenant], r.nr)
	}
	if table != "tenant_key" {
		return nil
	}
	for tenant, nr := range newest {
		if err := insertTenantKey(ctx, tx, tenant, nr+1, next, random(keyBytes)); err != nil {
			return err
		}
	}
	return nil
}

// outerPlace binds a wrapped key to its row.
func (v *Vault) outerPlace(table, tenant string, nr int) string {
	if table == "former_equal" {
		return place("equal", tenant, fmt.Sprint(nr))
	}
	return place(tenant, fmt.Sprint(nr))
}

func wrappedRows(ctx context.Context, q store.Querier, query string, args ...any) (all []wrappedRow, err error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read the vault's keys: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var r wrappedRow
		if err := rows.Scan(&r.tenant, &r.nr, &r.wrapped); err != nil {
			return nil, fmt.Errorf("read the vault's keys: %w", err)
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// Rewrap wraps the keys of runs that an older key of their tenant wraps with
// the newest, in batches, then drops the older keys. Rotate calls it; call it
// again where runs are driven, in case a death cut it short.
func (v *Vault) Rewrap(ctx context.Context, db *store.DB) (runs int64, err error) {
	for {
		n := int64(0)
		err := db.Update(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			n, err = v.rewrapRuns(ctx, tx)
			return err
		})
		if err != nil {
			return runs, fmt.Errorf("wrap the keys of runs anew: %w", err)
		}
		runs += n
		v.at("batch")
		if n < rewrapBatch {
			break
		}
	}
	dropped := int64(0)
	err = db.Update(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		dropped, err = tx.Exec(ctx, `DELETE FROM tenant_key WHERE version < (SELECT max(n.version) FROM tenant_key n WHERE n.tenant = tenant_key.tenant)
			AND NOT EXISTS (SELECT 1 FROM data_key d WHERE d.tenant = tenant_key.tenant AND d.version = tenant_key.version)`)
		return err
	})
	if err != nil || dropped == 0 {
		return runs, err
	}
	return runs, db.Shred(ctx)
}

// rewrapRuns moves one batch to the newest key of its tenant.
func (v *Vault) rewrapRuns(ctx context.Context, tx *store.Tx) (n int64, err error) {
	rows, err := tx.Query(ctx, `SELECT d.tenant, d.run, d.version, d.wrapped FROM data_key d
		WHERE d.version < (SELECT max(version) FROM tenant_key t WHERE t.tenant = d.tenant) ORDER BY d.tenant, d.run LIMIT $1`, rewrapBatch)
	if err != nil {
		return 0, err
	}
	type runKey struct {
		tenant, run string
		version     int
		wrapped     []byte
	}
	var batch []runKey
	for rows.Next() {
		var k runKey
		if err := rows.Scan(&k.tenant, &k.run, &k.version, &k.wrapped); err != nil {
			return 0, errors.Join(err, rows.Close())
		}
		batch = append(batch, k)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return 0, err
	}
	for _, k := range batch {
		old, err := v.tenantKeyOf(ctx, tx, k.tenant, k.version)
		if err != nil {
			return 0, err
		}
		newest, above, err := v.tenantKey(ctx, tx, k.tenant)
		if err != nil {
			return 0, err
		}
		key, err := unshut(old, k.wrapped, place(k.tenant, k.run))
		if err != nil {
			return 0, fmt.Errorf("open the key of run %s: %w", k.run, err)
		}
		wrapped, err := shut(above, key, place(k.tenant, k.run))
		if err != nil {
			return 0, err
		}
		if err := tx.ExecOne(ctx, "UPDATE data_key SET version = $1, wrapped = $2 WHERE tenant = $3 AND run = $4", newest, wrapped, k.tenant, k.run); err != nil {
			return 0, err
		}
	}
	return int64(len(batch)), nil
}
