package desk

import (
	"context"
	"strings"

	"countersign/internal/approvals"
	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// each points at the elements of a list.
func each[T any](all []T) []*T {
	out := make([]*T, len(all))
	for i := range all {
		out[i] = &all[i]
	}
	return out
}

// nameWho fills in who can act on what runs wait for: for a decision, whoever
// may still give it; for an answer, whoever has one of the roles; for a stopped
// run, the operators. A timer or another try
// needs nobody.
func (d *Desk) nameWho(ctx context.Context, q store.Querier, runs ...*engine.Run) error {
	n := namer{desk: d, book: d.book.Reading()}
	for _, r := range runs {
		for i := range r.WaitingFor {
			who, err := n.who(ctx, q, r.ID, r.WaitingFor[i])
			if err != nil {
				return err
			}
			r.WaitingFor[i].Who = who
		}
	}
	return nil
}

// named is nameWho for a run that something was just done with: that stands,
// whether or not people can be named.
func (d *Desk) named(ctx context.Context, run engine.Run) engine.Run {
	err := d.db.View(ctx, func(ctx context.Context, q store.Querier) error { return d.nameWho(ctx, q, &run) })
	if err != nil {
		d.logger.Error("name who can act", "run", run.ID, "cause", err)
	}
	return run
}

// namer names people for one reading.
type namer struct {
	desk      *Desk
	book      *approvals.Book
	operators string // in words, once asked
}

func (n *namer) who(ctx context.Context, q store.Querier, run id.Run, w engine.Waiting) (string, error) {
	switch w.Kind {
	case engine.WaitApproval:
		return n.deciders(ctx, q, id.Approval(w.Subject))
	case engine.WaitPerson:
		return n.operating(ctx, q)
	case engine.WaitInput:
		return n.answering(ctx, q, run, w.Path)
	}
	return "", nil
}

func (n *namer) deciders(ctx context.Context, q store.Querier, request id.Approval) (string, error) {
	can, deadEnd, err := n.book.Deciders(ctx, q, Tenant, request)
	switch {
	case problem.HasCode(err, "not_found"):
		return "", nil // the check of the folder says so
	case err != nil:
		return "", err
	case deadEnd != "":
		return "nobody: " + deadEnd, nil
	}
	return approvals.Names(can), nil
}

// answering names who may answer what a run asks at a step.
func (n *namer) answering(ctx context.Context, q store.Querier, run id.Run, path string) (string, error) {
	asked, err := n.desk.engine.Question(ctx, q, Tenant, run, path, 0)
	if problem.HasCode(err, "not_found") {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	all, err := n.desk.whoAnswers(ctx, q, asked)
	if err == nil && len(all) == 0 {
		return "somebody with the role " + strings.Join(asked.Roles, " or ") + "; nobody has it", nil
	}
	return approvals.Names(all), err
}

// operating names who may operate runs.
func (n *namer) operating(ctx context.Context, q store.Querier) (string, error) {
	if n.operators != "" {
		return n.operators, nil
	}
	all, err := n.desk.operators(ctx, q)
	if err != nil {
		return "", err
	}
	if n.operators = approvals.Names(all); len(all) == 0 {
		n.operators = "somebody with the role " + rolesWith(capOperate) + "; nobody has it"
	}
	return n.operators, nil
}
