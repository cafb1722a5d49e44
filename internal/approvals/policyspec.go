package approvals

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign/internal/canon"
	"countersign/internal/expr"
)

const policyType = "countersign.policy/1"

// policySpec is the compiled form of a policy.
type policySpec struct {
	Type    string     `json:"type"`
	Format  int        `json:"format"`
	Policy  string     `json:"policy"`
	Version int        `json:"version"`
	OnError askSpec    `json:"on_error"`
	Rules   []ruleSpec `json:"rules"`
}

type ruleSpec struct {
	Name    string   `json:"name"`
	When    string   `json:"when"`
	Effect  Effect   `json:"effect"`
	Approve *askSpec `json:"approve,omitzero"`
}

// askSpec has its defaults filled in, so that a later change of a default
// does not change an old version.
type askSpec struct {
	Groups             []Group `json:"groups"`
	DecideWithinUs     int64   `json:"decide_within_us"`
	ExecuteWithinUs    int64   `json:"execute_within_us"`
	InitiatorMayDecide bool    `json:"initiator_may_decide,omitzero"`
	EditorMayApprove   *bool   `json:"editor_may_approve,omitzero"`
	Reauthenticate     bool    `json:"reauthenticate,omitzero"`
}

func (a askSpec) asking() asking {
	return asking{Groups: a.Groups, DecideWithin: micros(a.DecideWithinUs), ExecuteWithin: micros(a.ExecuteWithinUs),
		InitiatorMayDecide: a.InitiatorMayDecide, EditorMayApprove: a.EditorMayApprove, Reauthenticate: a.Reauthenticate}
}

func micros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// sound reports whether a asks anybody at all: a stored form that does not is
// never taken for one that needs nobody.
func (a askSpec) sound() error {
	if len(a.Groups) == 0 || a.DecideWithinUs <= 0 || a.ExecuteWithinUs <= 0 {
		return errors.New("it asks nobody")
	}
	for _, g := range a.Groups {
		if g.Need < 1 || (g.Role == "") == (len(g.People) == 0) {
			return fmt.Errorf("the group %q cannot be filled", g.Name)
		}
	}
	return nil
}

// LoadPolicy reads the compiled form of a policy. The result has the same
// Digest as the policy it came from.
func LoadPolicy(compiled json.RawMessage) (*Policy, error) {
	var s policySpec
	if err := canon.Decode(compiled, policyLimits, &s); err != nil {
		return nil, fmt.Errorf("load policy: %w", err)
	}
	if s.Type != policyType || s.Format != 1 {
		return nil, fmt.Errorf("load policy: this program reads %s, not %q", policyType, s.Type)
	}
	p, err := s.build()
	if err != nil {
		return nil, fmt.Errorf("load policy %s: %w", s.Policy, err)
	}
	return p, nil
}

var policyLimits = canon.Limits{Bytes: 4 << 20, Depth: 16, Keys: 100_000}

// build compiles the conditions of a checked form and seals it.
func (s policySpec) build() (*Policy, error) {
	if err := s.OnError.sound(); err != nil {
		return nil, fmt.Errorf("on_error: %w", err)
	}
	p := &Policy{Name: s.Policy, Version: s.Version, onError: s.OnError.asking()}
	for _, r := range s.Rules {
		made, err := r.build()
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.Name, err)
		}
		p.rules, p.Rules = append(p.rules, made), append(p.Rules, r.Name)
	}
	compiled, err := canon.Marshal(s)
	if err != nil {
		return nil, err
	}
	p.Compiled, p.Digest = compiled, canon.Digest(compiled)
	return p, nil
}

func (r ruleSpec) build() (rule, error) {
	when, err := expr.CompileCondition(r.When, conditionNames)
	if err != nil {
		return rule{}, err
	}
	made := rule{name: r.Name, when: when, effect: r.Effect}
	switch {
	case r.Effect == Approve && r.Approve != nil:
		made.asking = r.Approve.asking()
		return made, r.Approve.sound()
	case (r.Effect == Allow || r.Effect == Deny) && r.Approve == nil:
		return made, nil
	}
	return rule{}, fmt.Errorf("the effect %q is none of allow, deny and approve", r.Effect)
}
