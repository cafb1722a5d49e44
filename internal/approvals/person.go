package approvals

import (
	"context"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// Person is somebody who may decide, as they are at this moment.
type Person struct {
	ID     id.Person
	Name   string
	Roles  []string
	Active bool
}

// People tells who there is. Person returns a problem not_found for an id
// that nobody has.
type People interface {
	Person(ctx context.Context, q store.Querier, tenant string, p id.Person) (Person, error)
	WithRole(ctx context.Context, q store.Querier, tenant, role string) ([]Person, error)
}

// Party names a person in a stored document.
type Party struct {
	ID   id.Person `json:"id"`
	Name string    `json:"name"`
}

// person is People.Person in which somebody unknown is inactive.
func (b *Book) person(ctx context.Context, q store.Querier, tenant string, p id.Person) (Person, error) {
	who, err := b.people.Person(ctx, q, tenant, p)
	if problem.HasCode(err, "not_found") {
		return Person{ID: p, Name: string(p)}, nil
	}
	return who, err
}

// candidates are the active people who hold a place of any of the groups,
// each once, in the order of the groups.
func (b *Book) candidates(ctx context.Context, q store.Querier, tenant string, groups []Group) ([]Person, error) {
	var all []Person
	seen := map[id.Person]bool{}
	for _, g := range groups {
		holders, err := b.holders(ctx, q, tenant, g)
		if err != nil {
			return nil, err
		}
		for _, p := range holders {
			if p.Active && !seen[p.ID] {
				seen[p.ID] = true
				all = append(all, p)
			}
		}
	}
	return all, nil
}

func (b *Book) holders(ctx context.Context, q store.Querier, tenant string, g Group) ([]Person, error) {
	if g.Role != "" {
		return b.people.WithRole(ctx, q, tenant, g.Role)
	}
	var all []Person
	for _, one := range g.People {
		p, err := b.person(ctx, q, tenant, one)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}
