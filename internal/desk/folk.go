package desk

import (
	"context"

	"countersign/internal/approvals"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/store"
)

// folk shows people to approvals: who they are and which roles they hold.
type folk struct{ people *identity.Store }

// Person returns the person as approvals see them. Problem: not_found.
func (f folk) Person(ctx context.Context, q store.Querier, tenant string, p id.Person) (approvals.Person, error) {
	who, err := f.people.Person(ctx, q, tenant, p)
	return seen(who), err
}

// WithRole returns who holds the role, disabled people too.
func (f folk) WithRole(ctx context.Context, q store.Querier, tenant, role string) ([]approvals.Person, error) {
	all, err := f.people.WithRole(ctx, q, tenant, role)
	out := make([]approvals.Person, 0, len(all))
	for _, p := range all {
		out = append(out, seen(p))
	}
	return out, err
}

func seen(p identity.Person) approvals.Person {
	return approvals.Person{ID: p.ID, Name: p.Name, Roles: p.Roles, Active: p.Active}
}
