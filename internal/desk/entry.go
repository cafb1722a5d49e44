package desk

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"countersign/internal/audit"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/store"
)

// EntryStory is one audit entry with its proof.
type EntryStory struct {
	Entry   audit.Entry
	Payload json.RawMessage // empty when there is none, or when it was erased
	Proof   audit.Proof
	Hashes  []string // of the proof, as digests, from the leaf up
}

// EntryStory returns one entry after proving it. Problems: forbidden,
// not_found.
func (d *Desk) EntryStory(ctx context.Context, p identity.Principal, ref string) (out EntryStory, err error) {
	if err := requireAny(p, "read the audit log", capAuditRead, capRunsRead); err != nil {
		return out, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		if out.Entry, err = d.log.Proven(ctx, q, Tenant, id.Entry(ref)); err != nil {
			return err
		}
		if out.Entry.Run == "" {
			if err := require(p, capAuditRead, "read the audit log"); err != nil {
				return err
			}
		}
		if out.Payload, err = d.log.Payload(ctx, q, Tenant, out.Entry.Seq); err != nil {
			return err
		}
		out.Proof, err = d.log.Proof(ctx, q, Tenant, id.Entry(ref))
		return err
	})
	for _, h := range out.Proof.Path {
		raw, err := base64.StdEncoding.DecodeString(h)
		if err != nil {
			return out, fmt.Errorf("read a hash of the proof: %w", err)
		}
		out.Hashes = append(out.Hashes, "sha256:"+hex.EncodeToString(raw))
	}
	return out, err
}
