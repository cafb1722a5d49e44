package engine

import (
	"context"
	"fmt"

	"countersign/internal/store"
	"countersign/internal/workflow"
)

// present puts a document before the gate, in one transaction.
func (s *session) present(ctx context.Context, t workflow.Task) (*wait, error) {
	s.crash("before", t.Path, t.Pass)
	s.crash("before-propose", t.Path, t.Pass)
	s.crash("before-propose-commit", t.Path, t.Pass)
	err := s.write(ctx, &commit{also: func(ctx context.Context, tx *store.Tx, c *commit) error {
		p := s.proposal(ctx, tx, t)
		p.Kind, p.Document, p.Summary, p.Key = ProposeDocument, t.Document, t.Title, readKey(s.run.Tenant, s.run.ID, t.Path, t.Pass)
		r, err := s.e.o.Gate.Propose(ctx, tx, p)
		if err != nil {
			return fmt.Errorf("present %s: %w", t.Path, err)
		}
		row := s.row(t.Path, t.Pass)
		row.InputDigest, row.Approval, row.IdempotencyKey = digestOf(t.Document), r.Request, p.Key
		if r.Status == Denied {
			c.events = append(c.events, workflow.Event{Kind: workflow.ActionDenied, Path: t.Path, Pass: t.Pass, Error: deniedBy(r)})
			return nil
		}
		c.events = append(c.events, workflow.Event{Kind: workflow.ApproveOpened, Path: t.Path, Pass: t.Pass,
			Data: data(map[string]any{"approval": r.Request, "digest": r.Digest})})
		if r.Status == Pending && s.alone {
			c.wait = waitApproval(t, r)
		}
		return nil
	}})
	if err == nil {
		s.crash("after-propose-commit", t.Path, t.Pass)
	}
	return nil, err
}

// awaitDocument looks at the request of a document and, once it is approved,
// has the gate check it as thoroughly as before a sending.
func (s *session) awaitDocument(ctx context.Context, t workflow.Task) (*wait, error) {
	r, err := s.ruling(ctx, s.row(t.Path, t.Pass).Approval)
	if err != nil {
		return nil, err
	}
	switch r.Status {
	case Pending:
		return s.pending(ctx, t, r, nil)
	case Allowed, Approved:
		if stale := s.wf.Stale(s.state, t.Path, s.now); len(stale) > 0 {
			return nil, s.outdated(ctx, t, nil, r, stale)
		}
		s.crash("before-commit", t.Path, t.Pass)
		return nil, s.write(ctx, &commit{also: func(ctx context.Context, tx *store.Tx, c *commit) error {
			if tx.ClockSuspect() {
				return errClock
			}
			adm, err := s.e.o.Gate.Admit(ctx, tx, r.Request, Facts{})
			if err != nil {
				return fmt.Errorf("admit %s: %w", r.Request, err)
			}
			if adm.Verdict != VerdictGo {
				return s.notAdmitted(ctx, tx, c, t, r, adm, nil)
			}
			c.events = append(c.events, workflow.Event{Kind: workflow.ApproveDone, Path: t.Path, Pass: t.Pass,
				Output: verdict(workflow.Approve, first(adm.By, r.By), first(adm.Comment, r.Comment), first(adm.Digest, r.Digest))})
			return nil
		}})
	}
	return nil, s.write(ctx, &commit{also: func(ctx context.Context, tx *store.Tx, c *commit) error {
		return s.close(ctx, tx, c, t, r, nil)
	}})
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
