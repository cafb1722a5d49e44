package desk

import (
	"context"
	"io"
	"strings"

	"countersign/internal/audit"
	"countersign/internal/audit/receipt"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/store"
)

// HeadView is a signed head as the API shows it.
type HeadView struct {
	Size      int64  `json:"size"`
	Note      string `json:"note"`
	PublicKey string `json:"public_key"`
}

// Entries lists audit entries, newest first. A run's own entries may be read
// by whoever may read runs. Problems: forbidden, invalid_query.
func (d *Desk) Entries(ctx context.Context, p identity.Principal, f EntryQuery) (page Page[audit.Entry], err error) {
	err = require(p, capAuditRead, "read the audit log")
	if f.Run != "" {
		err = requireAny(p, "read the audit log", capAuditRead, capRunsRead)
	}
	if err != nil {
		return page, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		if f.Run != "" {
			run, err := d.runID(ctx, q, f.Run)
			if err != nil {
				return err
			}
			f.Run = string(run)
		}
		page.Items, page.Next, err = d.log.Entries(ctx, q, audit.Filter{Tenant: Tenant, Actor: f.Person, Subject: f.Subject, Action: f.Action, Run: f.Run,
			Text: f.Text, Since: f.Since, Until: f.Until, Cursor: f.Cursor, Limit: limit(f.Limit)})
		return err
	})
	return page, err
}

// Head returns the last signed head. Problems: forbidden.
func (d *Desk) Head(ctx context.Context, p identity.Principal) (out HeadView, err error) {
	if err := require(p, capAuditRead, "read the audit log"); err != nil {
		return out, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		head, note, err := d.log.Head(ctx, q, Tenant)
		out = HeadView{Size: head.Size, Note: note, PublicKey: d.log.Public()}
		return err
	})
	return out, err
}

// Proof shows that an entry is in the log. Problems: forbidden, not_found.
func (d *Desk) Proof(ctx context.Context, p identity.Principal, entry string) (out audit.Proof, err error) {
	if err := require(p, capAuditRead, "read the audit log"); err != nil {
		return out, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		out, err = d.log.Proof(ctx, q, Tenant, id.Entry(entry))
		return err
	})
	return out, err
}

// Verify recomputes the whole log and records that it was done. Problem:
// forbidden.
func (d *Desk) Verify(ctx context.Context, p identity.Principal) (audit.Report, error) {
	if err := require(p, capAuditRead, "verify the audit log"); err != nil {
		return audit.Report{}, err
	}
	report, err := d.log.VerifyFolder(ctx)
	if err != nil {
		return report, err
	}
	outcome := "ok"
	if !report.OK {
		outcome = "failed"
		d.logger.Error("the audit log does not verify", "findings", report.Findings)
	}
	d.posture.verified(report, d.now())
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: "audit.verified", Outcome: outcome}))
		return err
	})
	if err != nil && !report.OK { // a log that is broken may take no entry; what was found is the answer
		d.logger.Error("record that the audit log does not verify", "cause", err)
		return report, nil
	}
	return report, err
}

// RotateKey replaces the key that signs the log and returns the new public
// key. No other process may have the folder open. Problem: forbidden.
func (d *Desk) RotateKey(ctx context.Context, p identity.Principal) (string, error) {
	if err := require(p, capAdmin, "replace the audit key"); err != nil {
		return "", err
	}
	by := d.entry(p, audit.Entry{})
	return d.log.Rotate(ctx, by.Actor, by.Channel)
}

// Export writes the whole log, as JSON Lines or as a table, and records it.
// Problem: forbidden.
func (d *Desk) Export(ctx context.Context, p identity.Principal, format string, w io.Writer) error {
	if err := require(p, capAuditRead, "export the audit log"); err != nil {
		return err
	}
	err := d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: "audit.exported", Outcome: format}))
		return err
	})
	if err != nil {
		return err
	}
	if format == "csv" {
		return d.log.ExportCSV(ctx, Tenant, w)
	}
	return d.log.ExportJSON(ctx, Tenant, w)
}

// Receipt returns the file that proves one approval to anybody with the
// public key. Problems: forbidden, not_found.
func (d *Desk) Receipt(ctx context.Context, p identity.Principal, ref string) (file []byte, err error) {
	if err := requireAny(p, "read receipts", capAuditRead, capApprovalsRead); err != nil {
		return nil, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		request, err := d.book.Get(ctx, q, Tenant, id.Approval(ref))
		if err != nil {
			return err
		}
		f := receipt.File{Approval: ref, Digest: request.Digest, Subject: string(request.Subject), Rulings: []receipt.Proof{}, Decisions: []receipt.Proof{}, Effects: []receipt.Proof{}}
		if err := d.proofs(ctx, q, &f, request.Run); err != nil {
			return err
		}
		file, err = f.Encode()
		return err
	})
	return file, err
}

// proofs gathers the entries that name the digest of the receipt.
func (d *Desk) proofs(ctx context.Context, q store.Querier, f *receipt.File, run id.Run) error {
	filter := audit.Filter{Tenant: Tenant, Run: string(run), OldestFirst: true, Limit: pageMax}
	for {
		entries, next, err := d.log.Entries(ctx, q, filter)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := d.addProof(ctx, q, f, e); err != nil {
				return err
			}
		}
		if filter.Cursor = next; next == "" {
			return nil
		}
	}
}

func (d *Desk) addProof(ctx context.Context, q store.Querier, f *receipt.File, e audit.Entry) error {
	into := section(f, e)
	if into == nil || e.Digest != f.Digest {
		return nil
	}
	p, err := d.log.Proof(ctx, q, Tenant, e.ID)
	if err != nil {
		return err
	}
	f.Head = p.Head
	*into = append(*into, receipt.Proof{Seq: p.Seq, Entry: p.Body, Path: p.Path})
	return nil
}

// section says where in a receipt an entry belongs; nil for nowhere.
func section(f *receipt.File, e audit.Entry) *[]receipt.Proof {
	switch {
	case strings.HasPrefix(e.Outcome, "refused:"):
		return nil // an attempt that changed nothing
	case e.Action == "approval.approve" || e.Action == "approval.reject":
		return &f.Decisions
	case e.Action == "approval.requested" || e.Action == "approval.edited" || e.Action == "approval.renewed" || e.Action == "approval.revoked":
		return &f.Rulings
	case strings.HasPrefix(e.Action, "effect."):
		return &f.Effects
	}
	return nil
}
