package approvals

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/internal/expr"
	"countersign/internal/id"
)

// Limits and defaults of a policy.
const (
	rulesMax  = 200
	groupsMax = 10
	needMax   = 20 // people per group
	peopleMax = 100

	decideWithinDefault  = 72 * time.Hour
	decideWithinMax      = 90 * 24 * time.Hour
	executeWithinDefault = 24 * time.Hour
	executeWithinMax     = 30 * 24 * time.Hour
)

// The names of rules that no policy writes.
const (
	RuleNone  = "no-match" // no rule matched: one person with RoleApprover
	RuleError = "on-error" // a rule could not be evaluated
)

// RoleApprover decides where no rule matches and where there is no policy.
const RoleApprover = "approver"

// Policy is one version of a tenant's ordered rules. It is immutable and safe
// for concurrent use. The nil policy asks one approver about everything.
type Policy struct {
	Name     string
	Version  int
	Digest   string          // of Compiled
	Compiled json.RawMessage // canonical countersign.policy/1; LoadPolicy gives the same policy back
	Rules    []string        // their names, in order

	onError asking
	rules   []rule
}

// rule is one compiled rule.
type rule struct {
	name   string
	when   *expr.Condition
	effect Effect
	asking asking
}

// Effect is what a rule says.
type Effect string

// The effects.
const (
	Allow   Effect = "allow"
	Deny    Effect = "deny"
	Approve Effect = "approve"
)

// Roles are the roles that the policy's groups name, with repetitions.
func (p *Policy) Roles() (roles []string) {
	groups := p.onError.Groups
	for _, r := range p.rules {
		groups = slices.Concat(groups, r.asking.Groups)
	}
	for _, g := range groups {
		if g.Role != "" {
			roles = append(roles, g.Role)
		}
	}
	return roles
}

// Comparison is a text that a rule compares a variable with.
type Comparison struct{ Rule, Text string }

// Compared lists the texts that the rules compare the variable with, in the
// order of the rules.
func (p *Policy) Compared(variable string) (all []Comparison) {
	for _, r := range p.rules {
		for _, text := range r.when.Compared(variable) {
			all = append(all, Comparison{r.name, text})
		}
	}
	return all
}

// Group is a number of places that distinct people must fill. Exactly one of
// Role and People says who can.
type Group struct {
	Name   string      `json:"name"`
	Role   string      `json:"role,omitzero"`
	People []id.Person `json:"people,omitzero"`
	Need   int         `json:"need"`
}

// holds reports whether the person can fill a place.
func (g Group) holds(p Person) bool {
	for _, r := range p.Roles {
		if g.Role != "" && r == g.Role {
			return true
		}
	}
	for _, one := range g.People {
		if one == p.ID {
			return true
		}
	}
	return false
}

// String says what the group needs: "2 of finance".
func (g Group) String() string { return fmt.Sprintf("%d of %s", g.Need, g.Name) }

// needs joins groups for sentences.
func needs(groups []Group) string {
	all := make([]string, len(groups))
	for i, g := range groups {
		all[i] = g.String()
	}
	return strings.Join(all, " and ")
}

// asking is what approve and on_error say.
type asking struct {
	Groups             []Group
	DecideWithin       time.Duration
	ExecuteWithin      time.Duration
	InitiatorMayDecide bool
	EditorMayApprove   *bool // nil: only where one approval is enough
	Reauthenticate     bool
}

// byApprover is what is asked where nothing else is said.
func byApprover() asking {
	return asking{Groups: []Group{{Name: RoleApprover, Role: RoleApprover, Need: 1}},
		DecideWithin: decideWithinDefault, ExecuteWithin: executeWithinDefault}
}

// fallback is what is asked when no rule gave an answer that can be used.
func (p *Policy) fallback() asking {
	if p == nil {
		return byApprover()
	}
	return p.onError
}
