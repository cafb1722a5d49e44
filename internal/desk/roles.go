package desk

import (
	"context"
	"slices"

	"countersign/internal/definitions"
	"countersign/internal/identity"
	"countersign/internal/store"
)

// Roles lists every role that means something here: the well-known ones, and
// what the policy and the questions in force ask for. Problem: forbidden.
func (d *Desk) Roles(ctx context.Context, p identity.Principal) (roles []string, err error) {
	if err := require(p, capAdmin, "see people"); err != nil {
		return nil, err
	}
	var named []string
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		policy, err := d.defs.PolicyInForce(ctx, q, Tenant)
		if err != nil {
			return err
		}
		if policy != nil {
			named = policy.Roles()
		}
		asked, err := d.askedRoles(ctx, q)
		named = append(named, asked...)
		return err
	})
	slices.Sort(named)
	roles = slices.Clone(identity.WellKnownRoles)
	for _, r := range slices.Compact(named) {
		if !slices.Contains(roles, r) {
			roles = append(roles, r)
		}
	}
	return roles, err
}

// askedRoles are the roles that answer the questions of workflows in force;
// a workflow that this program cannot read asks nobody.
func (d *Desk) askedRoles(ctx context.Context, q store.Querier) (roles []string, err error) {
	all, err := d.defs.List(ctx, q, Tenant, definitions.KindWorkflow, "")
	for _, s := range all {
		w, err := d.defs.Workflow(ctx, q, Tenant, s.Digest)
		if err != nil || !s.InForce {
			continue
		}
		for _, info := range w.Steps() {
			roles = append(roles, info.Roles...)
		}
	}
	return roles, err
}
