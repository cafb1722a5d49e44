package engine

import (
	"context"
	"fmt"
	"time"

	"countersign/internal/store"
	"countersign/internal/workflow"
)

// expiryGrace is how long after decide-by the engine looks at a request again
// that its gate still calls pending.
const expiryGrace = 30 * time.Second

// waitApproval is the wait for a decision.
func waitApproval(t workflow.Task, r Ruling) *wait {
	next := "Decide."
	if r.Revision > 1 {
		next = "Decide on the new revision: it changed since it was last decided or edited."
	}
	return &wait{status: WaitingApproval, wake: r.DecideBy, list: []Waiting{{Kind: WaitApproval, Path: t.Path, Subject: string(r.Request),
		Until: r.DecideBy, ResumesWhen: "the request is decided or expires", NextAction: next}}}
}

// pending waits for the decision, or closes a request whose time is over.
func (s *session) pending(ctx context.Context, t workflow.Task, r Ruling, eff *Effect) (*wait, error) {
	w := waitApproval(t, r)
	if r.DecideBy.IsZero() || s.now.Before(r.DecideBy) {
		return w, nil
	}
	gate, ok := s.e.o.Gate.(Expirer)
	if !ok {
		w.wake = s.now.Add(expiryGrace)
		return w, nil
	}
	late := false
	err := s.write(ctx, &commit{also: func(ctx context.Context, tx *store.Tx, c *commit) error {
		now, err := gate.Expire(ctx, tx, r.Request)
		if err != nil {
			return fmt.Errorf("expire request %s: %w", r.Request, err)
		}
		if now.Status == Pending || now.Status == Approved || now.Status == Allowed { // decided, or extended, meanwhile
			late = true
			return nil
		}
		return s.close(ctx, tx, c, t, now, eff)
	}})
	if err != nil || !late {
		return nil, err
	}
	w.wake = s.now.Add(s.e.o.PollEvery)
	return w, nil
}

// close records that a request ended without anything being done, and closes
// the ledger row that nobody will send any more. Without an effect it is the
// request of a document.
func (s *session) close(ctx context.Context, tx *store.Tx, c *commit, t workflow.Task, r Ruling, eff *Effect) error {
	ev := workflow.Event{Path: t.Path, Pass: t.Pass}
	switch r.Status {
	case Rejected:
		ev.Kind, ev.Output = workflow.ActionRejected, verdict(workflow.Reject, r.By, r.Comment, r.Digest)
		if eff == nil {
			ev.Kind = workflow.ApproveDone
		}
	case Expired:
		ev.Kind = workflow.ActionExpired
		if r.Comment != "" {
			ev.Error = &workflow.Failure{Class: workflow.Denied, Code: "expired", Message: r.Comment}
		}
	case Denied, Withdrawn:
		ev.Kind, ev.Error = workflow.ActionDenied, deniedBy(r)
	default:
		return fmt.Errorf("engine: the gate says %q about request %s, which this program does not know", r.Status, r.Request)
	}
	c.events = append(c.events, ev)
	return s.abandon(ctx, tx, eff, "The request ended before anything was sent: "+r.Status+".")
}

// abandon closes a ledger row that was never sent.
func (s *session) abandon(ctx context.Context, tx *store.Tx, eff *Effect, why string) error {
	if eff == nil || eff.Status != Prepared {
		return nil
	}
	return s.e.settle(ctx, tx, s.run, eff, resolution{status: Abandoned, message: s.run.unasked(eff, why), by: engineActor})
}

// deniedBy says why an action was denied.
func deniedBy(r Ruling) *workflow.Failure {
	f := &workflow.Failure{Class: workflow.Denied, Code: r.Status, Message: r.Comment}
	switch {
	case r.Comment != "":
	case r.Status == Withdrawn:
		f.Message = "The request was withdrawn."
	default:
		f.Message = "The policy does not allow this."
	}
	return f
}

func verdict(v, by, comment, digest string) []byte {
	return data(workflow.Verdict{Verdict: v, By: by, Comment: comment, Digest: digest})
}
