package desk

import (
	"context"

	"countersign/internal/audit"
	"countersign/internal/identity"
	"countersign/internal/store"
)

// RotateVault replaces the file and the tenant's key that sensitive values are
// encrypted under, and records it. It returns how many runs' keys were wrapped
// anew. No other process may have the folder open. Problem: forbidden.
func (d *Desk) RotateVault(ctx context.Context, p identity.Principal) (runs int64, err error) {
	if err := require(p, capAdmin, "replace the vault's key"); err != nil {
		return 0, err
	}
	return d.vault.Rotate(ctx, d.db, []string{Tenant}, func(ctx context.Context, tx *store.Tx, old, new string) error {
		_, err := d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: "vault.key_rotated", Outcome: "ok",
			Authority: map[string]string{"old_key": old, "new_key": new}}))
		return err
	})
}
