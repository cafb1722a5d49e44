package vault

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"fmt"

	"countersign/internal/store"
)

// Equal is a keyed hash of what the tenant was given: the same for the same
// bytes until the outermost key is replaced, and no help in guessing them.
func (v *Vault) Equal(tenant string, given []byte) string {
	return equalBy(v.equalKey(tenant), given)
}

// Same reports whether the hash is of what was given, also where it was made
// before the outermost key was replaced.
func (v *Vault) Same(tenant string, given []byte, hash string) bool {
	v.mu.Lock()
	keys := append([][]byte{equalKeyOf(v.outer, tenant)}, v.formerEqual[tenant]...)
	v.mu.Unlock()
	for _, key := range keys {
		if hmac.Equal([]byte(equalBy(key, given)), []byte(hash)) {
			return true
		}
	}
	return false
}

func (v *Vault) equalKey(tenant string) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	return equalKeyOf(v.outer, tenant)
}

func equalKeyOf(outer []byte, tenant string) []byte {
	return mac(outer, []byte("countersign.equal/1\n"+tenant))
}

func equalBy(key, given []byte) string { return "hmac-sha256:" + hex.EncodeToString(mac(key, given)) }

// keepEqual writes down what equal things of the tenant are told by now, before
// next takes over. It also proves, in a database without sensitive values, that
// next did.
func (v *Vault) keepEqual(ctx context.Context, tx *store.Tx, tenant string, next []byte) error {
	var nr int
	if err := tx.QueryRow(ctx, "SELECT coalesce(max(nr), 0) + 1 FROM former_equal WHERE tenant = $1", tenant).Scan(&nr); err != nil {
		return fmt.Errorf("keep a former key: %w", err)
	}
	wrapped, err := shut(next, v.equalKey(tenant), v.outerPlace("former_equal", tenant, nr))
	if err != nil {
		return err
	}
	return tx.ExecOne(ctx, "INSERT INTO former_equal (tenant, nr, outer_key, wrapped, created_at) VALUES ($1, $2, $3, $4, $5)",
		tenant, nr, fingerprint(next), wrapped, store.Micros(tx.Now()))
}

// reload takes the outermost key into use and reads what it wraps.
func (v *Vault) reload(ctx context.Context, db *store.DB, outer []byte) error {
	former := map[string][][]byte{}
	err := db.View(ctx, func(ctx context.Context, q store.Querier) error {
		all, err := wrappedRows(ctx, q, "SELECT tenant, nr, wrapped FROM former_equal ORDER BY tenant, nr DESC")
		if err != nil {
			return err
		}
		clear(former)
		for _, r := range all {
			key, err := unshut(outer, r.wrapped, v.outerPlace("former_equal", r.tenant, r.nr))
			if err != nil {
				return fmt.Errorf("open a former key of tenant %s: %w", r.tenant, err)
			}
			former[r.tenant] = append(former[r.tenant], key)
		}
		return nil
	})
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.outer, v.formerEqual = outer, former
	clear(v.tenants)
	return nil
}
