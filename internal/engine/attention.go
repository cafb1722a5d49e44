package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"countersign/internal/id"
	"countersign/internal/store"
)

// How late a run may be before it is listed, and how many are listed at most.
const (
	overdueAfter = time.Minute
	attentionMax = 500
)

// causes maps the code that blocked a run to the cause it is listed under.
var causes = map[string]string{
	codeUnknown: CauseUnknown, codeTampered: CauseTampered, codeRestored: CauseRestored, codeClock: CauseClock, codeVersion: CauseVersion, codePoison: CausePoison, codeAsk: CausePerson,
}

var causeOrder = []string{CauseUnknown, CauseTampered, CauseRestored, CauseClock, CauseVersion, CausePoison, CausePerson, CauseNotStarted, CauseOverdue}

// Attention lists what an operator must look at, grouped by cause, oldest
// first: unknown effects (of ended runs, too), blocked runs, and runs that
// should have been looked at more than a minute ago.
func (e *Engine) Attention(ctx context.Context, q store.Querier, tenant string) ([]Attention, error) {
	list, err := e.unknownAttention(ctx, q, tenant)
	if err != nil {
		return nil, err
	}
	late := store.Micros(e.o.Now().Add(-overdueAfter))
	rows, err := q.Query(ctx, "SELECT "+runColumns+` FROM run WHERE tenant = $1 AND (status = 'blocked' OR wake_at <= $2)
		ORDER BY id LIMIT $3`, tenant, late, attentionMax)
	if err != nil {
		return nil, fmt.Errorf("list runs that need attention: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scanRun(rows)
		if err != nil {
			return nil, fmt.Errorf("list runs that need attention: %w", err)
		}
		if a := attentionOf(r); a.Cause != CauseUnknown { // those are listed by effect
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b Attention) int {
		if c := slices.Index(causeOrder, a.Cause) - slices.Index(causeOrder, b.Cause); c != 0 {
			return c
		}
		return a.Since.Compare(b.Since)
	})
	return list, rows.Err()
}

// attentionOf says why a blocked or overdue run is listed.
func attentionOf(r Run) Attention {
	a := Attention{Run: r.ID, Path: r.Step, Since: r.UpdatedAt, Blocks: "run " + string(r.ID) + " of " + r.Workflow}
	if r.Error != nil {
		a.Why = r.Error.Message
	}
	if len(r.WaitingFor) > 0 {
		a.Path, a.Next = r.WaitingFor[0].Path, r.WaitingFor[0].NextAction
	}
	switch {
	case r.Status == Blocked:
		a.Cause = CausePerson
		if r.Error != nil && causes[r.Error.Code] != "" {
			a.Cause = causes[r.Error.Code]
		}
	case r.Status == WaitingApproval:
		a.Cause, a.Since, a.Next = CauseNotStarted, r.WakeAt, "See that the engine is running, then resume."
	default:
		a.Cause, a.Since, a.Next = CauseOverdue, r.WakeAt, "See that the engine is running, then resume."
	}
	return a
}

// unknownAttention lists the unknown effects, with what each blocks.
func (e *Engine) unknownAttention(ctx context.Context, q store.Querier, tenant string) ([]Attention, error) {
	unknown, err := e.UnknownEffects(ctx, q, tenant)
	if err != nil {
		return nil, err
	}
	status := map[id.Run]string{}
	var list []Attention
	for _, eff := range unknown {
		if status[eff.Run] == "" {
			r, err := e.Run(ctx, q, tenant, eff.Run)
			if err != nil {
				return nil, err
			}
			status[eff.Run] = r.Status
		}
		a := Attention{Cause: CauseUnknown, Run: eff.Run, Path: eff.Path, Effect: eff.ID, Since: eff.SentAt, Why: eff.Message,
			Blocks: "run " + string(eff.Run), Next: "Find out at the target whether it happened, and say so here."}
		switch s := status[eff.Run]; {
		case Final(s):
			a.Blocks = "nothing: its run is " + s
		case s != Blocked:
			a.Next = "Nothing yet: the target is asked again."
		}
		list = append(list, a)
	}
	return list, nil
}
