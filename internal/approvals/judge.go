package approvals

import (
	"context"
	"fmt"
	"strings"
	"time"

	"countersign/internal/expr"
	"countersign/internal/problem"
)

// Facts are what a rule's condition sees. Params is the decoded form of the
// validated parameters with their defaults.
type Facts struct {
	Tool           string
	ToolVersion    int
	Risk           string
	Target         string
	Workflow       string
	Params         any
	Initiator      string
	OnBehalfOf     string
	InitiatorRoles []string
	Now            time.Time // gives hour and weekday, in UTC
	Opened         bool      // Params has sensitive values in place: no reason repeats one
}

// conditionNames are the variables of a condition. hour is 0 to 23 and
// weekday "monday" to "sunday", both UTC.
var conditionNames = expr.Vars("tool", "tool_version", "risk", "params", "target", "initiator",
	"on_behalf_of", "initiator_roles", "workflow", "hour", "weekday")

// Weekdays are the values of weekday.
var Weekdays = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

func (f Facts) vars() map[string]any {
	roles := make([]any, len(f.InitiatorRoles))
	for i, r := range f.InitiatorRoles {
		roles[i] = r
	}
	now := f.Now.UTC()
	return map[string]any{
		"tool": f.Tool, "tool_version": float64(f.ToolVersion), "risk": f.Risk, "params": f.Params, "target": f.Target,
		"initiator": f.Initiator, "on_behalf_of": f.OnBehalfOf, "initiator_roles": roles, "workflow": f.Workflow,
		"hour": float64(now.Hour()), "weekday": strings.ToLower(now.Weekday().String()),
	}
}

// RuleTrace says of one rule whether it matched, and why in a sentence.
type RuleTrace struct {
	Rule    string `json:"rule"`
	Matched bool   `json:"matched"`
	Why     string `json:"why"`
}

// Verdict is what a policy says of facts. Its zero value means nothing and is
// refused wherever it is used.
type Verdict struct {
	Effect             Effect
	Policy             string
	PolicyVersion      int
	PolicyDigest       string
	Rule               string // the rule that matched, RuleNone or RuleError
	Why                string // a sentence, where the rule's name does not say it
	Groups             []Group
	DecideWithin       time.Duration
	ExecuteWithin      time.Duration
	InitiatorMayDecide bool
	EditorMayApprove   *bool // nil: only where one approval is enough
	Reauthenticate     bool
	Trace              []RuleTrace
}

// ask makes the verdict one that asks a.
func (v Verdict) ask(a asking) Verdict {
	v.Effect, v.Groups, v.DecideWithin, v.ExecuteWithin = Approve, a.Groups, a.DecideWithin, a.ExecuteWithin
	v.InitiatorMayDecide, v.EditorMayApprove, v.Reauthenticate = a.InitiatorMayDecide, a.EditorMayApprove, a.Reauthenticate
	return v
}

// Judge evaluates the rules in order; the first that matches wins, and none
// asks one approver. A deny rule that cannot be evaluated denies; any other
// that cannot asks the policy's on_error groups. The nil policy has no rules.
func (p *Policy) Judge(ctx context.Context, f Facts) Verdict {
	v := Verdict{Rule: RuleNone, ExecuteWithin: executeWithinDefault}
	if p == nil {
		v.Why = "There is no policy."
		return v.ask(byApprover())
	}
	v.Policy, v.PolicyVersion, v.PolicyDigest = p.Name, p.Version, p.Digest
	vars := f.vars()
	for i, r := range p.rules {
		matched, err := r.when.Eval(ctx, vars)
		switch {
		case err != nil:
			v.Trace = append(v.Trace, RuleTrace{r.name, false, "could not be evaluated" + f.reasonOf(err)})
			return p.errored(v, r).reached(p.rules[i+1:])
		case matched:
			v.Trace = append(v.Trace, RuleTrace{r.name, true, r.when.Source()})
			v.Rule = r.name
			return v.apply(r).reached(p.rules[i+1:])
		}
		v.Trace = append(v.Trace, RuleTrace{r.name, false, "does not hold: " + r.when.Source()})
	}
	v.Why = "No rule matched."
	return v.ask(byApprover())
}

func (v Verdict) apply(r rule) Verdict {
	if r.effect == Approve {
		return v.ask(r.asking)
	}
	v.Effect = r.effect
	return v
}

func (p *Policy) errored(v Verdict, r rule) Verdict {
	v.Why = fmt.Sprintf("The rule %s could not be evaluated.", r.name)
	if r.effect == Deny {
		v.Effect, v.Rule = Deny, r.name
		return v
	}
	v.Rule = RuleError
	return v.ask(p.onError)
}

// reached adds the rules that were not looked at.
func (v Verdict) reached(rest []rule) Verdict {
	for _, r := range rest {
		v.Trace = append(v.Trace, RuleTrace{r.name, false, "not reached: an earlier rule decided"})
	}
	return v
}

func (f Facts) reasonOf(err error) string {
	if f.Opened {
		return "; why is not said, because it may repeat a sensitive value"
	}
	if p, ok := err.(*problem.Error); ok {
		return ": " + p.Message
	}
	return ": " + err.Error()
}
