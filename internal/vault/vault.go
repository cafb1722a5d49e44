// Package vault keeps sensitive values apart from everything that is hashed,
// logged or shown, and gives a commitment in place of each.
//
// It guarantees that a value stands in the database only encrypted, by a key
// of its run that is wrapped by the tenant's, which a file outside the
// database wraps; that equal values of one run have equal commitments and
// those of two runs have not; and that a value opens only in its own run and
// only if it is the one that was committed to. It must not know what a value
// means or who may read it.
package vault

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"countersign/internal/problem"
	"countersign/internal/store"
)

//go:embed migrations
var migrations embed.FS

// Migrations is this package's line of the database schema.
var Migrations = store.Line{Name: "vault", FS: migrations, Dir: "migrations"}

// KeyFile is the name of the file with the outermost key, beside the database.
// It is not part of backups.
const KeyFile = "vault.key"

// Vault opens and shuts the values of one database. It is safe for concurrent
// use.
type Vault struct {
	outer []byte
	dir   string

	mu      sync.Mutex
	tenants map[string][]byte // tenant keys, unwrapped: tenant/version

	formerEqual map[string][][]byte  // by tenant: what Equal used before the outermost key was replaced, newest first
	crash       func(instant string) // tests only
}

func (v *Vault) at(instant string) {
	if v.crash != nil {
		v.crash(instant)
	}
}

// Open reads the key file in dir and erases again what was erased before the
// database was put back from a backup. The first start makes it; a database that
// has keys but no file is refused, because a new one would open nothing.
func Open(ctx context.Context, db *store.DB, dir string) (*Vault, error) {
	path := filepath.Join(dir, KeyFile)
	var wrapping string
	err := db.View(ctx, func(ctx context.Context, q store.Querier) error {
		return q.QueryRow(ctx, "SELECT coalesce(max(outer_key), '') FROM (SELECT outer_key FROM tenant_key UNION ALL SELECT outer_key FROM former_equal)").Scan(&wrapping)
	})
	if err != nil {
		return nil, fmt.Errorf("read the vault's keys: %w", err)
	}
	if err := finishRotation(dir, wrapping); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && wrapping == "" {
		text, err = newKeyFile(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem.New(problem.Conflict, "vault_key_missing",
			"The database holds sensitive values but their key %s is gone. Restore the file; a new key would open none of them.", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the vault's key: %w", err)
	}
	outer, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(outer) != keyBytes {
		return nil, problem.New(problem.Conflict, "vault_key_damaged", "The key file %s is damaged: it must be %d hex digits. Restore it from where you keep it.", path, 2*keyBytes)
	}
	if wrapping != "" && wrapping != fingerprint(outer) {
		return nil, problem.New(problem.Conflict, "vault_key_mismatch", "The key file %s is not the one the sensitive values of this database were encrypted with. Restore the right one.", path)
	}
	v := &Vault{dir: dir, tenants: map[string][]byte{}}
	if err := v.reload(ctx, db, outer); err != nil {
		return nil, err
	}
	return v, v.replay(ctx, db)
}

// newKeyFile makes the key, readable by this user alone; of two that start at
// once, one makes it and both read it.
func newKeyFile(path string) ([]byte, error) {
	f, err := os.CreateTemp(filepath.Dir(path), KeyFile+".*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(hex.EncodeToString(random(keyBytes)) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// fingerprint tells keys apart without giving them away.
func fingerprint(key []byte) string {
	return hex.EncodeToString(mac(key, []byte("countersign.key/1"))[:8])
}

func mac(key, text []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(text)
	return h.Sum(nil)
}

// tenantKey returns the newest key of the tenant and its version; 0 if there
// is none yet.
func (v *Vault) tenantKey(ctx context.Context, q store.Querier, tenant string) (int, []byte, error) {
	var version int
	if err := q.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM tenant_key WHERE tenant = $1", tenant).Scan(&version); err != nil {
		return 0, nil, fmt.Errorf("find the tenant's key: %w", err)
	}
	if version == 0 {
		return 0, nil, nil
	}
	key, err := v.tenantKeyOf(ctx, q, tenant, version)
	return version, key, err
}

func (v *Vault) tenantKeyOf(ctx context.Context, q store.Querier, tenant string, version int) ([]byte, error) {
	name := place(tenant, fmt.Sprint(version))
	v.mu.Lock()
	key := v.tenants[name]
	v.mu.Unlock()
	if key != nil {
		return key, nil
	}
	var wrapped []byte
	err := q.QueryRow(ctx, "SELECT wrapped FROM tenant_key WHERE tenant = $1 AND version = $2", tenant, version).Scan(&wrapped)
	if err == nil {
		key, err = unshut(v.outer, wrapped, name)
	}
	if err != nil {
		return nil, fmt.Errorf("open version %d of the tenant's key: %w", version, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tenants[name] = key
	return key, nil
}

// makeTenantKey writes the first key of a tenant. It is remembered once it is
// read back: the transaction may yet be rolled back.
func (v *Vault) makeTenantKey(ctx context.Context, tx *store.Tx, tenant string) (int, []byte, error) {
	key := random(keyBytes)
	return 1, key, insertTenantKey(ctx, tx, tenant, 1, v.outer, key)
}

func insertTenantKey(ctx context.Context, tx *store.Tx, tenant string, version int, outer, key []byte) error {
	wrapped, err := shut(outer, key, place(tenant, fmt.Sprint(version)))
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO tenant_key (tenant, version, outer_key, wrapped, created_at) VALUES ($1, $2, $3, $4, $5)",
		tenant, version, fingerprint(outer), wrapped, store.Micros(tx.Now()))
	return err
}

// place binds a ciphertext to its row: no part holds a line break.
func place(parts ...string) string { return strings.Join(parts, "\n") }
