package audit

import (
	"context"
	"fmt"

	"countersign/internal/id"
	"countersign/internal/store"
)

// erasedAction is the entry that says a payload was erased; its subject is
// the entry that had it.
const erasedAction = "audit.payload_erased"

// Erase destroys the payload of an entry with its salt, so that the digest in
// the entry says nothing any more, and appends an entry by e's actor that
// says so. The log still verifies. Erasing twice is recorded twice. Problem:
// not_found.
func (l *Log) Erase(ctx context.Context, tx *store.Tx, target id.Entry, e Entry) (id.Entry, error) {
	seq, _, err := find(ctx, tx, e.Tenant, target)
	if err != nil {
		return "", err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM audit_payload WHERE tenant = $1 AND seq = $2`, e.Tenant, seq); err != nil {
		return "", fmt.Errorf("erase the payload of %s: %w", target, err)
	}
	e.Action, e.Subject = erasedAction, string(target)
	return l.Append(ctx, tx, e)
}
