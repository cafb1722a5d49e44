package engine

import (
	"context"
	"errors"
	"fmt"

	"countersign/internal/id"
	"countersign/internal/store"
	"countersign/internal/tools"
	"countersign/internal/workflow"
)

// errClock stops what needs a clock that can be trusted.
var errClock = &workflow.Failure{Class: workflow.Transient, Code: codeClock,
	Message: "The clock of this machine has been set back by more than five minutes. Nothing is sent until it is put right, or an operator accepts its time (console clock accept)."}

// errNotAdmitted rolls a second sending back: an effect whose outcome is
// unknown gets no new revision, and is not sent on anything but "go".
var errNotAdmitted = errors.New("engine: sending again is not admitted")

// ruling asks the gate on a snapshot of its own.
func (s *session) ruling(ctx context.Context, request id.Approval) (r Ruling, err error) {
	err = s.e.o.DB.View(ctx, func(ctx context.Context, q store.Querier) error {
		r, err = s.e.o.Gate.Ruling(ctx, q, request)
		return err
	})
	if err != nil {
		return Ruling{}, fmt.Errorf("ruling on %s: %w", request, err)
	}
	return r, nil
}

// awaitAction looks at an open action: its ledger row first, because what was
// sent goes before what may be sent; then the gate's ruling.
func (s *session) awaitAction(ctx context.Context, t workflow.Task) (*wait, error) {
	act, eff, err := s.ledger(ctx, t)
	if err != nil {
		return nil, err
	}
	switch eff.Status {
	case Unknown:
		return s.reconcile(ctx, t, act, eff)
	case Prepared, NotDone:
	default:
		return nil, fmt.Errorf("engine: step %s is open, but its effect %s is %s", t.Path, eff.ID, eff.Status)
	}
	if w := s.notBefore(t); w != nil {
		return w, nil
	}
	r, err := s.ruling(ctx, act.Approval)
	if err != nil {
		return nil, err
	}
	switch r.Status {
	case Pending:
		return s.pending(ctx, t, r, eff)
	case Allowed, Approved:
		return s.execute(ctx, t, act, eff, r)
	}
	return nil, s.write(ctx, &commit{also: func(ctx context.Context, tx *store.Tx, c *commit) error {
		return s.close(ctx, tx, c, t, r, eff)
	}})
}

// ledger reads the action of an open step and its newest effect.
func (s *session) ledger(ctx context.Context, t workflow.Task) (act action, eff *Effect, err error) {
	err = s.e.o.DB.View(ctx, func(ctx context.Context, q store.Querier) error {
		if act, err = readAction(ctx, q, s.run.Tenant, s.row(t.Path, t.Pass).Action); err != nil {
			return err
		}
		last, err := lastEffect(ctx, q, "tenant = $1 AND action = $2", s.run.Tenant, string(act.ID))
		eff = &last
		return err
	})
	if err != nil {
		return act, nil, fmt.Errorf("ledger of step %s: %w", t.Path, err)
	}
	return act, eff, nil
}

// execute revalidates an action that may be done, writes the intent, and sends
// it: two commits after the approval.
func (s *session) execute(ctx context.Context, t workflow.Task, act action, eff *Effect, r Ruling) (*wait, error) {
	if s.run.mustAsk(eff) { // its own sending, after the backup, may be what changed the facts
		tool, ok := s.tools[act.ToolDigest]
		if !ok {
			return nil, otherTool(act)
		}
		return s.send(ctx, t, tool, act, eff, r, Facts{Resend: true})
	}
	if stale := s.wf.Stale(s.state, t.Path, s.now); len(stale) > 0 {
		return nil, s.outdated(ctx, t, eff, r, stale)
	}
	tool, ok := s.tools[act.ToolDigest]
	if !ok {
		return nil, otherTool(act)
	}
	s.crash("before-sent", t.Path, t.Pass)
	seen, w, err := s.revalidate(ctx, t, tool, act, eff, r)
	if w != nil || err != nil || seen == nil {
		return w, err
	}
	return s.send(ctx, t, tool, act, eff, r, *seen)
}

func otherTool(act action) error {
	return &workflow.Failure{Class: workflow.Incompatible, Code: codeVersion, Message: "The tool " + act.Tool + " is not the one that was proposed."}
}

// revalidate reads the precondition again, right before sending. Without facts
// to send on, it says what to wait for, or has recorded what follows.
func (s *session) revalidate(ctx context.Context, t workflow.Task, tool *tools.Tool, act action, eff *Effect, r Ruling) (*Facts, *wait, error) {
	params := act.Params
	if len(r.Params) > 0 {
		params = r.Params
	}
	seen := s.e.facts(ctx, s.looking(params), tool, false)
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	pre := seen.Precondition
	switch {
	case pre == nil || pre.OK && pre.Met:
		return &seen, nil, nil
	case !pre.OK:
		f := workflow.Failure{Class: workflow.Transient, Code: "precondition_unread", Message: because("The precondition could not be read", pre.Error)}
		if w := s.retry(t, f, 0); w != nil {
			return nil, w, nil
		}
		return nil, nil, s.dropped(ctx, t, eff, r, f)
	case r.Status == Allowed:
		return nil, nil, s.dropped(ctx, t, eff, r, unmet(pre))
	}
	return nil, nil, s.renew(ctx, t, eff, r, seen, because("It changed since you approved: the precondition does not hold", pre.Error))
}

// renew sends the action back to whoever approved it.
func (s *session) renew(ctx context.Context, t workflow.Task, eff *Effect, r Ruling, seen Facts, why string) error {
	return s.write(ctx, &commit{also: func(ctx context.Context, tx *store.Tx, c *commit) error {
		now, err := s.e.o.Gate.Renew(ctx, tx, r.Request, seen, why)
		if err != nil {
			return fmt.Errorf("renew request %s: %w", r.Request, err)
		}
		return s.revised(ctx, tx, c, t, now, eff, why)
	}})
}

// revised records a new revision and waits for the decision on it.
func (s *session) revised(ctx context.Context, tx *store.Tx, c *commit, t workflow.Task, now Ruling, eff *Effect, why string) error {
	switch now.Status {
	case Pending, Allowed, Approved:
	default:
		return s.close(ctx, tx, c, t, now, eff)
	}
	c.events = append(c.events, workflow.Event{Kind: workflow.ActionRevised, Path: t.Path, Pass: t.Pass,
		Data: data(map[string]any{"approval": now.Request, "revision": now.Revision, "digest": now.Digest, "why": why})})
	w := waitApproval(t, now)
	w.list[0].NextAction = "Decide again: " + why
	if now.Status != Pending { // allowed again by policy: look again, but not in a tight loop
		w = waitRetry(t.Path, string(now.Request), "the next look is due", tx.Now().Add(s.e.o.PollEvery), &workflow.Failure{Class: workflow.Transient, Message: why})
	}
	c.wait = w
	return nil
}

// dropped gives an action up that was not sent: its step fails.
func (s *session) dropped(ctx context.Context, t workflow.Task, eff *Effect, r Ruling, f workflow.Failure) error {
	return s.write(ctx, &commit{also: func(ctx context.Context, tx *store.Tx, c *commit) error {
		if err := s.e.o.Gate.Withdraw(ctx, tx, r.Request, f.Message, engineActor); err != nil {
			return fmt.Errorf("withdraw request %s: %w", r.Request, err)
		}
		c.events = append(c.events, failure(t, eff.Attempts, f))
		return s.abandon(ctx, tx, eff, f.Message)
	}})
}

// outdated takes an approved action back that was built on reads which are too
// old by now: they are read again, and it is proposed anew.
func (s *session) outdated(ctx context.Context, t workflow.Task, eff *Effect, r Ruling, stale []workflow.Event) error {
	const why = "What it was built on is older than the workflow allows. It is read again and proposed anew."
	return s.write(ctx, &commit{also: func(ctx context.Context, tx *store.Tx, c *commit) error {
		if err := s.e.o.Gate.Withdraw(ctx, tx, r.Request, why, engineActor); err != nil {
			return fmt.Errorf("withdraw request %s: %w", r.Request, err)
		}
		c.events = append(c.events, stale...)
		return s.abandon(ctx, tx, eff, why)
	}})
}

// send writes the intent and, once it is durable, sends.
func (s *session) send(ctx context.Context, t workflow.Task, tool *tools.Tool, act action, eff *Effect, r Ruling, seen Facts) (*wait, error) {
	s.crash("before-sent-commit", t.Path, t.Pass)
	again := eff.Status == Unknown
	err := s.write(ctx, &commit{also: func(ctx context.Context, tx *store.Tx, c *commit) error {
		if tx.ClockSuspect() {
			return errClock
		}
		adm, err := s.e.o.Gate.Admit(ctx, tx, r.Request, seen)
		if err != nil {
			return fmt.Errorf("admit %s: %w", r.Request, err)
		}
		if again && adm.Verdict != VerdictGo {
			return errNotAdmitted
		}
		return s.admitted(ctx, tx, c, t, tool, r, adm, seen, eff)
	}})
	if err != nil || eff.Status != Sent {
		return nil, err
	}
	eff.again = again
	s.crash("after-sent-commit", t.Path, t.Pass)
	return s.dispatch(ctx, t, tool, act, eff)
}

// admitted does what the gate's verdict says, in the gate's transaction.
func (s *session) admitted(ctx context.Context, tx *store.Tx, c *commit, t workflow.Task, tool *tools.Tool, r Ruling, adm Admission, seen Facts, eff *Effect) error {
	if adm.Verdict != VerdictGo {
		return s.notAdmitted(ctx, tx, c, t, r, adm, eff)
	}
	why := s.fits(adm, eff)
	if why == "" {
		var err error
		if why, err = s.unopened(ctx, tx, adm.Request); err != nil {
			return err
		}
	}
	if why != "" {
		return s.stopped(ctx, tx, c, t, why)
	}
	if adm.Key != eff.Key { // another request after one that is known not to have happened
		next := &Effect{Action: eff.Action, Path: t.Path, Pass: t.Pass, Key: adm.Key, base: eff.base, Generation: eff.Generation + 1, Approval: eff.Approval}
		if err := s.e.prepare(ctx, tx, s.run, next, tool); err != nil {
			return err
		}
		*eff = *next
	}
	switch {
	case len(adm.Pin) > 0:
		eff.pin = adm.Pin
	case seen.Precondition != nil:
		eff.pin = seen.Precondition.Pin
	}
	ask := s.run.mustAsk(eff)
	ttl, keyed := tool.CanResend()
	if ask {
		ttl = 0
	}
	if err := s.e.markSent(ctx, tx, s.run, eff, adm, ttl, keyed); err != nil {
		return err
	}
	row := s.row(t.Path, t.Pass)
	row.Attempts, row.IdempotencyKey, row.InputDigest = row.Attempts+1, eff.Key, digestOf(adm.Params)
	row.Status = string(workflow.Waiting)
	s.touch(row)
	if ask {
		return s.askBeforeSending(ctx, tx, eff)
	}
	return nil
}

// fits compares what the gate admitted with the ledger; it returns what does
// not add up.
func (s *session) fits(adm Admission, eff *Effect) string {
	switch {
	case len(adm.Request) == 0 || adm.Digest == "":
		return "The admitted subject holds no request."
	case adm.Key == keyOf(eff.base, eff.Generation+1) && eff.Status == NotDone:
		return ""
	case adm.Key != eff.Key:
		return "The idempotency key of the subject is not that of the ledger."
	case eff.Attempts > 0 && eff.RequestDigest != digestOf(adm.Request):
		return "Other bytes were sent before under the same idempotency key."
	}
	return ""
}

// stopped blocks the run because something does not add up. Nothing is sent.
func (s *session) stopped(ctx context.Context, tx *store.Tx, c *commit, t workflow.Task, why string) error {
	f := &workflow.Failure{Class: workflow.Incompatible, Code: codeTampered, Message: textOf("Nothing was sent.", why)}
	c.wait = blockedBy(t.Path, string(s.row(t.Path, t.Pass).Approval), f, nextActions[codeTampered])
	s.logOf(t.Path, t.Pass).Error("sending refused", "why", why)
	return s.e.recordBlocked(ctx, tx, s.run, f)
}

// notAdmitted records every verdict but "go".
func (s *session) notAdmitted(ctx context.Context, tx *store.Tx, c *commit, t workflow.Task, r Ruling, adm Admission, eff *Effect) error {
	switch adm.Verdict {
	case VerdictExpired, VerdictDenied:
		status := map[string]string{VerdictExpired: Expired, VerdictDenied: Denied}[adm.Verdict]
		return s.close(ctx, tx, c, t, Ruling{Request: r.Request, Status: status, Comment: adm.Why, Digest: adm.Digest}, eff)
	case VerdictRenewed, VerdictRevoked:
		now, err := s.e.o.Gate.Ruling(ctx, tx, r.Request)
		if err != nil {
			return fmt.Errorf("ruling on %s: %w", r.Request, err)
		}
		return s.revised(ctx, tx, c, t, now, eff, adm.Why)
	case VerdictBlocked:
		return s.stopped(ctx, tx, c, t, adm.Why)
	}
	return fmt.Errorf("engine: the gate's verdict on %s is %q, which this program does not know", r.Request, adm.Verdict)
}
