package drill

import (
	"context"
	"encoding/json"
	"fmt"

	"countersign/internal/canon"
	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/problem"
	"countersign/internal/schema"
)

// approve approves what waits, by as many people as it takes. Nobody who can is
// the end: the drill cannot go on.
func (r *rehearsal) approve(ctx context.Context) (stuck bool, err error) {
	page, err := r.inst.Desk.Approvals(ctx, desk.Terminal(), desk.ApprovalQuery{Run: r.out.run.ID, Status: "pending"})
	if err != nil {
		return false, err
	}
	for _, a := range page.Items {
		decided := false
		for _, p := range r.d.people.approvers {
			_, err := r.inst.Desk.Decide(ctx, p, a.ID, desk.Decide{Verdict: "approve", Digest: a.Digest})
			if problem.From(err) != nil && problem.From(err).Kind == problem.Internal {
				return false, err
			}
			decided = decided || err == nil
		}
		if !decided {
			return true, nil
		}
	}
	return false, nil
}

// answer gives every open question an answer that fits its form.
func (r *rehearsal) answer(ctx context.Context) error {
	page, err := r.inst.Desk.RunQuestions(ctx, desk.Terminal(), r.ref)
	if err != nil {
		return err
	}
	for _, q := range page.Items {
		if q.Status != engine.QuestionOpen {
			continue
		}
		value, err := fitting(q.Form)
		if err != nil {
			return fmt.Errorf("the drill cannot make up an answer to step %s (%w)", q.Path, err)
		}
		died, err := dying(func() error {
			_, err := r.inst.Desk.Answer(ctx, r.d.people.approvers[0], r.ref, desk.Answer{Step: q.Path, Pass: q.Pass, Value: value})
			return err
		})
		if err != nil {
			return err
		}
		if died {
			return r.revive(ctx)
		}
	}
	return nil
}

// fitting is a value that fits a JSON Schema.
func fitting(form json.RawMessage) (json.RawMessage, error) {
	source, err := canon.Value(form)
	if err != nil {
		return nil, err
	}
	s, err := schema.Compile(source, schema.Options{Object: true})
	if err != nil {
		return nil, err
	}
	v, err := s.Example()
	if err != nil {
		return nil, err
	}
	return canon.Marshal(v)
}

// settle says what happened to an effect that only a person can find out about:
// the drill's target knows. Any other reason to be blocked is the end.
func (r *rehearsal) settle(ctx context.Context) (stuck bool, err error) {
	page, err := r.inst.Desk.RunEffects(ctx, desk.Terminal(), r.ref)
	if err != nil {
		return false, err
	}
	settled := false
	for _, e := range page.Items {
		if e.Status != engine.Unknown {
			continue
		}
		in := desk.Resolve{Outcome: engine.DidNotSendAgain, Evidence: "The drill's target has nothing under this key."}
		if r.target.happened(e.Key) {
			in.Outcome, in.Evidence = engine.Happened, "The drill's target has it."
			in.Receipt = r.target.output(e.Key)
		}
		for _, p := range r.d.people.approvers[:2] { // two, where the risk asks for two
			_, err := r.inst.Desk.Resolve(ctx, p, string(e.ID), in)
			if err != nil && !problem.HasCode(err, "not_unknown") {
				return false, err
			}
		}
		settled = true
		r.out.people++
	}
	return !settled, nil
}
