package desk

import (
	"context"
	"encoding/json"
	"time"

	"countersign/internal/audit"
	"countersign/internal/definitions"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// Install stores a bundle of definitions and puts its versions in force, each
// change with its audit entry. Problem: version_reused.
func (d *Desk) Install(ctx context.Context, p identity.Principal, b *definitions.Bundle) (changes []definitions.Change, err error) {
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if changes, err = b.Register(ctx, tx, Tenant); err != nil {
			return err
		}
		for _, c := range changes {
			_, err := d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: "definition." + c.What,
				Subject: string(c.Kind) + " " + c.Name, Digest: c.Digest, Outcome: "ok", Payload: payload(map[string]any{"version": c.Version})}))
			if err != nil {
				return err
			}
		}
		return nil
	})
	return changes, err
}

// DefinitionView is one stored definition as the API shows it.
type DefinitionView struct {
	Kind     string          `json:"kind"`
	Name     string          `json:"name"`
	Version  int             `json:"version"`
	Digest   string          `json:"digest"`
	File     string          `json:"file"`
	Source   string          `json:"source"`
	InForce  bool            `json:"in_force"`
	Title    string          `json:"title,omitempty"`
	Risk     string          `json:"risk,omitempty"`    // tools
	Effect   string          `json:"effect,omitempty"`  // tools: read or write
	Honesty  string          `json:"honesty,omitempty"` // write tools: how near to exactly once
	Since    time.Time       `json:"since"`
	Drill    *Drill          `json:"drill,omitempty"` // workflows: the last one; absent: never
	Compiled json.RawMessage `json:"-"`
}

// DefinitionList lists the definitions of a kind, empty for all.
func (d *Desk) DefinitionList(ctx context.Context, p identity.Principal, kind string) (page Page[DefinitionView], err error) {
	if err := requireAny(p, "read definitions", capRunsRead, capApprovalsRead, capPropose); err != nil {
		return page, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		all, err := d.defs.List(ctx, q, Tenant, definitions.Kind(kind), "")
		page.Items = make([]DefinitionView, 0, len(all))
		for _, s := range all {
			v, err := d.definitionView(ctx, q, s)
			if err != nil {
				return err
			}
			page.Items = append(page.Items, v)
		}
		return err
	})
	return page, err
}

// definitionView describes a stored version; one that this program cannot
// read is shown by its name and source alone.
func (d *Desk) definitionView(ctx context.Context, q store.Querier, s definitions.Summary) (DefinitionView, error) {
	v := DefinitionView{Kind: string(s.Kind), Name: s.Name, Version: s.Version, Digest: s.Digest, File: s.File, Source: s.Source, InForce: s.InForce, Since: s.Created}
	switch s.Kind {
	case definitions.KindWorkflow:
		if w, err := d.defs.Workflow(ctx, q, Tenant, s.Digest); err == nil {
			v.Title, v.Compiled = w.Title, w.Compiled
		}
		var err error
		if v.Drill, err = d.lastDrill(ctx, q, s.Digest); err != nil {
			return v, err
		}
	case definitions.KindTool:
		if t, err := d.defs.Tool(ctx, q, Tenant, s.Digest); err == nil {
			v.Title, v.Risk, v.Effect, v.Compiled = t.Title, t.Risk, "read", t.Compiled
			if t.Write {
				v.Effect, v.Honesty = "write", t.Honesty()
			}
		}
	case definitions.KindPolicy:
		if p, err := d.defs.Policy(ctx, q, Tenant, s.Digest); err == nil {
			v.Compiled = p.Compiled
		}
	}
	return v, ctx.Err()
}

// Explanation says who would have to approve a call, and why.
type Explanation struct {
	Summary string      `json:"summary,omitempty"` // what the call would do
	Effect  string      `json:"effect"`            // allow, deny, approve
	Rule    string      `json:"rule"`
	Groups  []GroupView `json:"groups"`
	Trace   []RuleTrace `json:"trace"`
}

// GroupView is one group that would have to agree.
type GroupView struct {
	Name string  `json:"name"`
	Need int     `json:"need"`
	Can  []Party `json:"can"`
}

// Explain judges a call that nobody proposed, as if the caller had. Problems:
// unknown_tool, invalid, forbidden.
func (d *Desk) Explain(ctx context.Context, p identity.Principal, in Explain) (out Explanation, err error) {
	if err := requireAny(p, "ask about the policy", capRunsRead, capApprovalsRead, capPropose); err != nil {
		return out, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		f, err := d.imagined(ctx, q, p, in)
		if err != nil {
			return err
		}
		policy, err := d.defs.PolicyInForce(ctx, q, Tenant)
		if err != nil {
			return err
		}
		verdict, err := d.judge(ctx, q, policy, f, d.now())
		if err != nil {
			return err
		}
		out, err = d.explained(ctx, q, verdict)
		out.Summary = f.summary
		return err
	})
	return out, err
}

// imagined is what the policy would be shown of the call.
func (d *Desk) imagined(ctx context.Context, q store.Querier, p identity.Principal, in Explain) (facts, error) {
	t, err := d.defs.ToolInForce(ctx, q, Tenant, in.Tool)
	if err != nil {
		return facts{}, err
	}
	if !t.Write {
		return facts{}, problem.New(problem.Invalid, "invalid", "%s only reads; nobody has to approve it.", t.Name).At("/tool", "is a read tool")
	}
	if len(in.Params) == 0 {
		in.Params = json.RawMessage("{}")
	}
	params, err := t.PrepareParams(in.Params)
	if err != nil {
		return facts{}, below("/params", err)
	}
	about, err := t.Describe(params, d.config)
	if err != nil {
		return facts{}, err
	}
	return facts{tenant: Tenant, tool: t.Name, toolVersion: t.Version, risk: t.Risk, target: about.Target, summary: about.Summary,
		workflow: in.Workflow, params: params, initiator: p.Person, onBehalfOf: in.OnBehalfOf}, nil
}
