package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"countersign/internal/approvals"
	"countersign/internal/audit"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/store"
)

// fillHistory gathers decisions, revisions and notes into the timeline.
func (d *Desk) fillHistory(ctx context.Context, q store.Querier, r approvals.Request, _ identity.Principal, out *Approval) error {
	decisions, err := d.book.Decisions(ctx, q, r.Tenant, r.ID)
	if err != nil {
		return err
	}
	revisions, err := d.book.Revisions(ctx, q, r.Tenant, r.ID)
	if err != nil {
		return err
	}
	notes, err := d.book.Notes(ctx, q, r.Tenant, r.ID)
	if err != nil {
		return err
	}
	for _, dec := range decisions {
		out.Decisions = append(out.Decisions, decisionView(dec))
		out.Timeline = append(out.Timeline, Moment{At: dec.DecidedAt, What: verb(dec.Verdict) + fmt.Sprintf(" revision %d", dec.Revision), Who: dec.PersonName, Note: dec.Comment})
		if !dec.RetractedAt.IsZero() {
			out.Timeline = append(out.Timeline, Moment{At: dec.RetractedAt, What: fmt.Sprintf("took the approval of revision %d back", dec.Revision), Who: dec.PersonName, Note: dec.RetractedWhy})
		}
	}
	for _, rev := range revisions {
		by := rev.CausedBy.Name
		if by == "" && rev.Revision == 1 {
			by = r.InitiatorName
		}
		out.Timeline = append(out.Timeline, Moment{At: rev.CreatedAt, What: fmt.Sprintf("made revision %d", rev.Revision), Who: by, Note: strings.TrimSpace(rev.Why + " " + rev.Comment)})
	}
	for _, n := range notes {
		out.Timeline = append(out.Timeline, moment(n))
	}
	decided := r.Status == approvals.Approved || r.Status == approvals.Rejected // the decision itself says so
	if !r.ClosedAt.IsZero() && !decided {
		out.Timeline = append(out.Timeline, Moment{At: r.ClosedAt, What: string(r.Status), Who: r.ClosedByName, Note: r.ClosedWhy})
	}
	slices.SortStableFunc(out.Timeline, func(a, b Moment) int { return a.At.Compare(b.At) })
	return nil
}

// fillChanges is what changed against the revision before.
func (d *Desk) fillChanges(ctx context.Context, q store.Querier, r approvals.Request, _ identity.Principal, out *Approval) error {
	if r.Revision < 2 {
		return nil
	}
	before, err := d.book.Revision(ctx, q, r.Tenant, r.ID, r.Revision-1)
	if err != nil {
		return err
	}
	changes, err := changesBetween(before.Subject, r.Subject)
	if err != nil { // the one before cannot be read; the alarm says that it was exchanged
		return nil
	}
	out.Changes = changes
	return nil
}

func verb(verdict string) string {
	if verdict == approvals.VerdictReject {
		return "rejected"
	}
	return "approved"
}

func moment(n approvals.Note) Moment {
	switch n.Kind {
	case approvals.NoteView:
		return Moment{At: n.At, What: fmt.Sprintf("first saw revision %d", n.Revision), Who: n.By.Name}
	case approvals.NoteExtension:
		return Moment{At: n.At, What: "time to decide extended to " + n.DecideBy.Format(instantForm), Who: n.By.Name, Note: n.Text}
	}
	return Moment{At: n.At, What: "remark", Who: n.By.Name, Note: n.Text}
}

func decisionView(r approvals.DecisionRecord) DecisionView {
	return DecisionView{ID: string(r.ID), Person: Party{ID: string(r.Person), Name: r.PersonName}, Verdict: r.Verdict, Digest: r.Digest, Revision: r.Revision,
		Groups: append([]string{}, r.Groups...), Authority: r.Authority, Rule: r.Rule, PolicyVersion: r.PolicyVersion, Auth: r.Auth, Channel: r.Channel, Comment: r.Comment,
		DecidedAt: r.DecidedAt, AuditEntry: r.AuditEntry, RetractedAt: r.RetractedAt}
}

func changesBetween(from, to json.RawMessage) ([]Change, error) {
	all, err := approvals.DiffSubjects(from, to)
	out := make([]Change, 0, len(all))
	for _, c := range all {
		out = append(out, Change{Pointer: c.Pointer, Old: c.Old, New: c.New})
	}
	return out, err
}

// stale is the problem of a page that shows another revision than the current
// one, with what changed since.
func (d *Desk) stale(ctx context.Context, r approvals.Request, digest string) error {
	stale := approvals.ErrStaleDigest.With("digest", r.Digest).With("revision", r.Revision)
	_ = d.db.View(ctx, func(ctx context.Context, q store.Querier) error { // without the diff the answer still stands
		revisions, err := d.book.Revisions(ctx, q, r.Tenant, r.ID)
		if err != nil {
			return err
		}
		for _, rev := range revisions {
			if rev.Digest == digest {
				changes, err := changesBetween(rev.Subject, r.Subject)
				stale = stale.With("changes", changes)
				return err
			}
		}
		return nil
	})
	return stale
}

// RecordView notes that p saw the whole of a revision for the first time. It
// never keeps anybody from reading: callers ignore its error.
func (d *Desk) RecordView(ctx context.Context, p identity.Principal, ref string, revision int) error {
	seen := false
	err := d.db.View(ctx, func(ctx context.Context, q store.Querier) (err error) {
		seen, err = d.book.HasSeen(ctx, q, Tenant, id.Approval(ref), revision, p.Person)
		return err
	})
	if err != nil || seen {
		return err
	}
	return d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		first, err := d.book.Seen(ctx, tx, Tenant, id.Approval(ref), revision, approvals.Party{ID: p.Person, Name: p.Name})
		if err != nil || !first {
			return err
		}
		r, err := d.book.Get(ctx, tx, Tenant, id.Approval(ref))
		if err != nil {
			return err
		}
		_, err = d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: "approval.viewed", Subject: ref, Run: r.Run, Digest: r.Digest, Outcome: fmt.Sprintf("revision %d", revision)}))
		return err
	})
}
