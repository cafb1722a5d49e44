package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/workflow"
)

// Limits of a page of runs.
const (
	PageDefault = 50
	PageMax     = 200
)

// Filter narrows a list of runs. Empty fields do not.
type Filter struct {
	Tenant    string
	Status    string
	Workflow  string
	Initiator string
	Thread    string
	Q         string // part of the id or the run key
	Since     time.Time
	Cursor    string // from the page before
	Limit     int    // 1 to PageMax; 0: PageDefault
}

// Run reads one run. Another tenant's does not exist.
func (e *Engine) Run(ctx context.Context, q store.Querier, tenant string, run id.Run) (Run, error) {
	return oneRun(ctx, q, "tenant = $1 AND id = $2", tenant, string(run))
}

// RunByKey reads the run that has the run key.
func (e *Engine) RunByKey(ctx context.Context, q store.Querier, tenant, key string) (Run, error) {
	return oneRun(ctx, q, "tenant = $1 AND key = $2", tenant, key)
}

// where collects conditions with their arguments.
type where struct {
	conds []string
	args  []any
}

// add appends a condition in which ? stands for the argument.
func (w *where) add(cond string, arg any) {
	w.args = append(w.args, arg)
	w.conds = append(w.conds, strings.ReplaceAll(cond, "?", fmt.Sprintf("$%d", len(w.args))))
}

// Runs lists runs, newest first. next is the cursor of the following page,
// empty on the last one.
func (e *Engine) Runs(ctx context.Context, q store.Querier, f Filter) (runs []Run, next string, err error) {
	limit := f.Limit
	if limit == 0 {
		limit = PageDefault
	}
	if limit < 1 || limit > PageMax {
		return nil, "", problem.New(problem.Invalid, "limit", "The limit must be between 1 and %d; it is %d.", PageMax, f.Limit).At("/limit", "out of range")
	}
	w, err := f.where()
	if err != nil {
		return nil, "", err
	}
	w.args = append(w.args, limit+1)
	rows, err := q.Query(ctx, fmt.Sprintf("SELECT %s FROM run WHERE %s ORDER BY id DESC LIMIT $%d", runColumns, strings.Join(w.conds, " AND "), len(w.args)), w.args...)
	if err != nil {
		return nil, "", fmt.Errorf("list runs: %w", err)
	}
	defer rows.Close()
	runs = []Run{}
	for rows.Next() {
		r, err := scanRun(rows)
		if err != nil {
			return nil, "", fmt.Errorf("list runs: %w", err)
		}
		runs = append(runs, r)
	}
	if len(runs) > limit {
		runs = runs[:limit]
		next = string(runs[limit-1].ID)
	}
	return runs, next, rows.Err()
}

func (f Filter) where() (*where, error) {
	w := &where{}
	w.add("tenant = ?", f.Tenant)
	for _, c := range []struct{ cond, value string }{
		{"status = ?", f.Status}, {"workflow = ?", f.Workflow}, {"initiator = ?", f.Initiator}, {"thread = ?", f.Thread},
	} {
		if c.value != "" {
			w.add(c.cond, c.value)
		}
	}
	if f.Q != "" {
		w.add("(instr(id, ?) > 0 OR instr(lower(COALESCE(key, '')), ?) > 0)", strings.ToLower(f.Q))
	}
	if !f.Since.IsZero() {
		w.add("created_at >= ?", store.Micros(f.Since))
	}
	if f.Cursor != "" {
		if !id.Valid("run_", f.Cursor) {
			return nil, problem.New(problem.Invalid, "cursor", "The cursor is not one this list gave.").At("/cursor", "unknown")
		}
		w.add("id < ?", f.Cursor)
	}
	return w, nil
}

// Steps lists every pass of every step that was begun, in that order, with
// the recorded outputs.
func (e *Engine) Steps(ctx context.Context, q store.Querier, tenant string, run id.Run) ([]Step, error) {
	steps, err := stepRows(ctx, q, tenant, run)
	if err != nil {
		return nil, err
	}
	outputs := map[int64]json.RawMessage{}
	err = eachCheckpoint(ctx, q, tenant, run, func(c Checkpoint) error {
		outputs[c.Version] = c.Output
		return nil
	})
	for i := range steps {
		steps[i].Output = outputs[steps[i].outputAt]
	}
	return steps, err
}

// Checkpoints lists a run's record, oldest first. It does not verify it.
func (e *Engine) Checkpoints(ctx context.Context, q store.Querier, tenant string, run id.Run) (all []Checkpoint, err error) {
	err = eachCheckpoint(ctx, q, tenant, run, func(c Checkpoint) error {
		all = append(all, c)
		return nil
	})
	return all, err
}

// State is what a run's checkpoints add up to. It verifies them: a record that
// was altered is an error that says where.
func (e *Engine) State(ctx context.Context, q store.Querier, tenant string, run id.Run) (workflow.State, error) {
	r, err := e.Run(ctx, q, tenant, run)
	if err != nil {
		return workflow.State{}, err
	}
	_, state, err := e.stateOf(ctx, q, r)
	return state, err
}

// Effects lists the effects of a run, oldest first.
func (e *Engine) Effects(ctx context.Context, q store.Querier, tenant string, run id.Run) ([]Effect, error) {
	return effectsWhere(ctx, q, "tenant = $1 AND run = $2", tenant, string(run))
}

// Effect reads one effect with everything that was learned about it.
func (e *Engine) Effect(ctx context.Context, q store.Querier, tenant string, effect id.Effect) (Effect, error) {
	eff, err := lastEffect(ctx, q, "tenant = $1 AND id = $2", tenant, string(effect))
	if err != nil {
		return Effect{}, err
	}
	eff.Late, err = readEvidence(ctx, q, eff)
	return eff, err
}

// EffectOf reads the newest effect of an action.
func (e *Engine) EffectOf(ctx context.Context, q store.Querier, tenant string, action id.Action) (Effect, error) {
	return lastEffect(ctx, q, "tenant = $1 AND action = $2", tenant, string(action))
}

// UnknownEffects lists the effects of which nobody knows whether they happened.
func (e *Engine) UnknownEffects(ctx context.Context, q store.Querier, tenant string) ([]Effect, error) {
	return effectsWhere(ctx, q, "tenant = $1 AND status = 'unknown'", tenant)
}
