package desk

import (
	"slices"
	"strings"

	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
)

// The capabilities, named like the token scopes of the API. A machine's token
// has the scopes an administrator gave it; a person has those of their roles,
// and a personal token those of its scopes that its owner has at the moment.
const (
	capRunsRead      = "runs:read"
	capRunsWrite     = "runs:write"
	capPropose       = "actions:propose"
	capApprovalsRead = "approvals:read"
	capDecide        = "approvals:decide"
	capOperate       = "operate"
	capAuditRead     = "audit:read"
	capAdmin         = "admin"
)

// everyone is what any signed-in person may do. Deciding is among it because
// the policy, not a role, says who is eligible for a request.
var everyone = []string{capRunsRead, capApprovalsRead, capDecide}

// granted says what each well-known role adds. Other roles only make their
// holders eligible in policies.
var granted = map[string][]string{
	"admin":    {capRunsWrite, capPropose, capOperate, capAuditRead, capAdmin},
	"operator": {capRunsWrite, capPropose, capOperate, capAuditRead},
	"builder":  {capRunsWrite, capPropose},
	"auditor":  {capAuditRead},
}

// may reports whether p has the capability.
func may(p identity.Principal, capability string) bool {
	if p.Token != "" && !slices.Contains(p.Scopes, capability) {
		return false
	}
	if p.Kind != identity.KindPerson {
		return p.Token != ""
	}
	if p.Person == "" {
		return false
	}
	if slices.Contains(everyone, capability) {
		return true
	}
	for _, role := range p.Roles {
		if slices.Contains(granted[role], capability) {
			return true
		}
	}
	return false
}

// May reports whether p has the capability, for pages that hide what cannot
// be done. Every use case checks for itself.
func May(p identity.Principal, capability string) bool { return may(p, capability) }

// require returns a problem of code forbidden unless p has the capability. It
// says which roles would do.
func require(p identity.Principal, capability, doing string) error {
	if may(p, capability) {
		return nil
	}
	if p.Token != "" && !slices.Contains(p.Scopes, capability) {
		return problem.New(problem.Forbidden, "missing_scope", "This token may not %s: it lacks the scope %s. Ask its owner for a token that has it.", doing, capability)
	}
	return problem.New(problem.Forbidden, "forbidden", "You may not %s. People with the role %s can; ask an administrator if you should.", doing, rolesWith(capability))
}

func rolesWith(capability string) string { return strings.Join(rolesThat(capability), " or ") }

// rolesThat lists the roles that give a capability.
func rolesThat(capability string) []string {
	var roles []string
	for role, caps := range granted {
		if slices.Contains(caps, capability) {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return roles
}

// mayAnswer says why p, who holds the roles, may not answer the question; nil
// if they may. Machines are refused by construction; who started the run may
// answer like anybody else.
func mayAnswer(p identity.Principal, roles []string, asked engine.Question) *problem.Error {
	switch {
	case p.Kind != identity.KindPerson:
		return problem.New(problem.Forbidden, "not_a_person", "A machine's token never answers. Sign in, or use a personal token.")
	case !may(p, capDecide):
		return problem.New(problem.Forbidden, "missing_scope", "This token may not answer questions: it lacks the scope %s. Ask its owner for a token that has it.", capDecide)
	case !asked.May(roles):
		return problem.New(problem.Forbidden, "not_eligible", "You may not answer this. People with the role %s can.", strings.Join(asked.Roles, " or "))
	}
	return nil
}

// refusal keeps a nil problem a nil error.
func refusal(p *problem.Error) error {
	if p == nil {
		return nil
	}
	return p
}

// actor is p as the engine and the audit log name them.
func actor(p identity.Principal) engine.Actor {
	a := engine.Actor{Kind: p.Kind, ID: string(p.Person), Name: p.Name, How: p.How, Channel: p.Channel}
	if p.Token != "" && p.Kind == "machine" {
		a.ID = string(p.Token)
	}
	return a
}

// initiator is the principal that what p starts counts as started by: the
// person, also behind a token, since a token belongs to an owner.
func initiator(p identity.Principal) id.Person { return p.Person }
