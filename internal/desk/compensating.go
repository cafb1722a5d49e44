package desk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"countersign/internal/canon"
	"countersign/internal/definitions"
	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/sealed"
	"countersign/internal/store"
	"countersign/internal/tools"
	"countersign/internal/workflow"
)

// correctionPrefix begins the names of workflows that correct runs.
const correctionPrefix = "correction-"

// Correction is one effect of a run and what would correct it.
type Correction struct {
	Effect  id.Effect       `json:"effect"`
	Step    string          `json:"step"`
	Did     string          `json:"did"` // the tool that did it
	Tool    string          `json:"tool,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Summary string          `json:"summary,omitempty"`
	Why     string          `json:"why,omitempty"` // why nothing can be proposed
}

// CorrectionPlan lists what a run did, newest first, with the action that
// corrects each, as its tool declares. Problems: forbidden, not_found.
func (d *Desk) CorrectionPlan(ctx context.Context, p identity.Principal, ref string) (plan []Correction, err error) {
	err = d.viewRun(ctx, p, ref, func(ctx context.Context, q store.Querier, run id.Run) error {
		plan, err = d.corrections(ctx, q, run)
		return err
	})
	return plan, err
}

// corrections plans from the ledger, in reverse order of what happened.
func (d *Desk) corrections(ctx context.Context, q store.Querier, run id.Run) ([]Correction, error) {
	effects, err := d.engine.Effects(ctx, q, Tenant, run)
	if err != nil {
		return nil, err
	}
	steps, err := d.engine.Steps(ctx, q, Tenant, run)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(effects, func(a, b engine.Effect) int { return b.ResolvedAt.Compare(a.ResolvedAt) })
	plan := []Correction{}
	for _, e := range effects {
		if e.Status != engine.Confirmed {
			continue
		}
		c := Correction{Effect: e.ID, Step: e.Path, Did: e.Tool}
		var output json.RawMessage
		for _, s := range steps {
			if s.Path == e.Path && s.Pass == e.Pass {
				output = s.Output
			}
		}
		if err := d.correct(ctx, q, run, e, output, &c); err != nil {
			return nil, err
		}
		plan = append(plan, c)
	}
	return plan, nil
}

// correct fills in the action that corrects one effect, or why there is none.
func (d *Desk) correct(ctx context.Context, q store.Querier, run id.Run, e engine.Effect, output json.RawMessage, c *Correction) error {
	t, err := d.defs.Tool(ctx, q, Tenant, e.ToolDigest)
	if err != nil {
		c.Why = "The tool it was done with is not here any more."
		return nil
	}
	if _, ok := t.Compensation(); !ok {
		c.Why = "The tool names nothing that corrects it."
		return nil
	}
	var receipt tools.Receipt
	if len(e.Receipt) > 0 {
		if err := json.Unmarshal(e.Receipt, &receipt); err != nil {
			return fmt.Errorf("read the receipt of %s: %w", e.ID, err)
		}
	}
	name, with, err := t.Compensate(e.Params(), output, receipt, d.config)
	if err != nil {
		c.Why = problem.From(err).Message
		return nil
	}
	by, err := d.defs.ToolInForce(ctx, q, Tenant, name)
	if err != nil || !by.Write {
		c.Why = "The tool " + name + " that would correct it is not in force here, or only reads."
		return nil
	}
	open, err := d.opened(ctx, q, Tenant, run, with)
	if err != nil {
		return err
	}
	ready, err := by.PrepareParams(open)
	if err != nil {
		c.Why = "The parameters it would need do not fit " + name + ": " + problem.From(err).Message
		return nil
	}
	about, err := by.Describe(with, d.config)
	if err != nil {
		c.Why = problem.From(err).Message
		return nil
	}
	c.Tool, c.Params, c.Summary = name, with, about.Summary
	if !sealed.In(with) {
		c.Params = ready
	}
	return nil
}

// Correct starts a run that corrects what another did: one new action after
// the other, newest first, each with an approval and a key of its own, so that
// nothing is corrected twice. A rejection ends it. Problems: forbidden,
// invalid, not_found, run_open, nothing_to_correct.
func (d *Desk) Correct(ctx context.Context, p identity.Principal, ref, reason string) (run engine.Run, err error) {
	if err := require(p, capPropose, "propose what corrects a run"); err != nil {
		return run, err
	}
	reason, err = words("/reason", reason, reasonCharsMax)
	if err != nil {
		return run, err
	}
	of, err := d.operable(ctx, p, ref, "correct runs")
	if err != nil {
		return run, err
	}
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := d.ended(ctx, tx, of); err != nil {
			return err
		}
		plan, err := d.corrections(ctx, tx, of)
		if err != nil {
			return err
		}
		plan = slices.DeleteFunc(plan, func(c Correction) bool { return c.Tool == "" })
		if len(plan) == 0 {
			return problem.New(problem.Conflict, "nothing_to_correct", "Nothing that this run did can be corrected with a tool: see what the plan says of each effect.")
		}
		run, err = d.startCorrection(ctx, tx, p, of, plan, reason)
		return err
	})
	return run, err
}

func (d *Desk) startCorrection(ctx context.Context, tx *store.Tx, p identity.Principal, of id.Run, plan []Correction, reason string) (engine.Run, error) {
	catalog, err := d.defs.ToolsInForce(ctx, tx, Tenant)
	if err != nil {
		return engine.Run{}, err
	}
	w, err := correctionWorkflow(plan, catalog)
	if err != nil {
		return engine.Run{}, err
	}
	if err := definitions.Keep(ctx, tx, Tenant, w); err != nil {
		return engine.Run{}, err
	}
	input := map[string]any{"of": string(of), "reason": reason}
	for i, c := range plan {
		params, err := d.opened(ctx, tx, Tenant, of, c.Params)
		if err != nil {
			return engine.Run{}, err
		}
		input[fmt.Sprint("c", i+1)] = map[string]any{"effect": string(c.Effect), "params": params}
	}
	raw, err := canon.Marshal(input)
	if err != nil {
		return engine.Run{}, err
	}
	r, _, err := d.create(ctx, tx, p, w, StartRun{Input: raw, Thread: string(of)}, nil)
	return r, err
}

// correctionWorkflow compiles the workflow of a plan. Its name follows from
// the tools and from what is sensitive, so that equal plans share it.
func correctionWorkflow(plan []Correction, catalog definitions.Catalog) (*workflow.Workflow, error) {
	var fields, required, sensitive []string
	var steps strings.Builder
	for i, c := range plan {
		name := fmt.Sprint("c", i+1)
		fields = append(fields, name+": {type: object, required: [effect, params], additionalProperties: false, properties: {effect: {type: string}, params: {type: object}}}")
		required = append(required, name)
		sensitive = append(sensitive, hidden("/"+name+"/params", c, catalog[c.Tool])...)
		fmt.Fprintf(&steps, "  - {id: %s, title: %q, action: %s, with: \"${input.%s.params}\", key: \"corrects ${input.%s.effect}\", reason: \"${input.reason}\", on_reject: end, on_expire: end}\n",
			name, "Correct "+c.Did, c.Tool, name, name)
	}
	body := fmt.Sprintf("input:\n  type: object\n  additionalProperties: false\n  required: [of, reason, %s]\n  properties: {of: {type: string}, reason: {type: string}, %s}\nsensitive: %s\nsteps:\n%s",
		strings.Join(required, ", "), strings.Join(fields, ", "), payload(append([]string{}, sensitive...)), steps.String())
	sum := sha256.Sum256([]byte(body))
	src := fmt.Sprintf("format: 1\nworkflow: %s%s\nversion: 1\ntitle: Correct what a run did\n%s", correctionPrefix, hex.EncodeToString(sum[:6]), body)
	return workflow.Compile("correction", []byte(src), catalog)
}

// hidden is what stays sealed in the parameters of a correction: what was
// sealed in the run it corrects, and what its own tool says.
func hidden(above string, c Correction, t *tools.Tool) []string {
	var out []string
	if v, err := canon.Value(c.Params); err == nil {
		for _, at := range sealed.Places(v) {
			out = append(out, above+at.Pointer)
		}
	}
	if t != nil {
		for _, p := range t.Sensitive {
			if !slices.Contains(out, above+p) {
				out = append(out, above+p)
			}
		}
	}
	return out
}
