package desk

import (
	"context"
	"strings"

	"countersign/internal/approvals"
	"countersign/internal/engine"
	"countersign/internal/identity"
	"countersign/internal/store"
)

// CauseDeadEnd is the cause of attention that only the desk sees: a request
// waits that nobody can decide.
const CauseDeadEnd = "nobody_can_decide"

// CauseUnanswerable is the cause of a run that asks what nobody can answer.
const CauseUnanswerable = "nobody_can_answer"

// Attention lists what a person must look at: what stops runs, most urgent
// first, then requests that nobody can decide and questions that nobody can
// answer as people are now. Problem:
// forbidden.
func (d *Desk) Attention(ctx context.Context, p identity.Principal) (out []engine.Attention, err error) {
	if err := require(p, capRunsRead, "read runs"); err != nil {
		return nil, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		if out, err = d.engine.Attention(ctx, q, Tenant); err != nil {
			return err
		}
		if err := d.halfSaid(ctx, q, out); err != nil {
			return err
		}
		dead, err := d.book.DeadEnds(ctx, q, Tenant)
		if err != nil {
			return err
		}
		for _, i := range dead {
			out = append(out, deadEnd(i))
		}
		asked, err := d.unanswerable(ctx, q)
		for _, one := range asked {
			out = append(out, unanswered(one))
		}
		return err
	})
	return out, err
}

// halfSaid puts what one person said of an unknown effect in place of what is
// next, where a second person must say it too.
func (d *Desk) halfSaid(ctx context.Context, q store.Querier, all []engine.Attention) error {
	for i, a := range all {
		if a.Effect == "" {
			continue
		}
		e, err := d.engine.Effect(ctx, q, Tenant, a.Effect)
		if err != nil {
			return err
		}
		v, err := d.effectView(ctx, q, e)
		if err != nil {
			return err
		}
		if v.Said != "" {
			all[i].Next = v.Said
		}
	}
	return nil
}

func deadEnd(i approvals.Item) engine.Attention {
	return engine.Attention{Cause: CauseDeadEnd, Run: i.Run, Path: i.Path, Approval: i.ID, Since: i.CreatedAt, Blocks: "run " + string(i.Run) + " of " + i.Workflow,
		Why: "It " + i.DeadEnd + ".", Next: "Let an administrator give somebody the role, or enable them; or cancel the run. Otherwise it expires at " + i.DecideBy.Format(instantForm) + "."}
}

// unanswerable lists the open questions whose roles nobody active has.
func (d *Desk) unanswerable(ctx context.Context, q store.Querier) ([]engine.Question, error) {
	all, err := d.engine.OpenQuestions(ctx, q, Tenant)
	if err != nil {
		return nil, err
	}
	anybody := map[string]bool{} // by roles
	var dead []engine.Question
	for _, asked := range all {
		roles := strings.Join(asked.Roles, " or ")
		if _, known := anybody[roles]; !known {
			people, err := d.whoAnswers(ctx, q, asked)
			if err != nil {
				return nil, err
			}
			anybody[roles] = len(people) > 0
		}
		if !anybody[roles] {
			dead = append(dead, asked)
		}
	}
	return dead, nil
}

func unanswered(q engine.Question) engine.Attention {
	a := engine.Attention{Cause: CauseUnanswerable, Run: q.Run, Path: q.Path, Since: q.AskedAt, Blocks: "run " + string(q.Run),
		Why:  "Nobody who is active has the role " + strings.Join(q.Roles, " or ") + ".",
		Next: "Let an administrator give somebody the role, or enable them; or cancel the run."}
	if !q.AnswerBy.IsZero() {
		a.Next += " Otherwise it expires at " + q.AnswerBy.Format(instantForm) + "."
	}
	return a
}
