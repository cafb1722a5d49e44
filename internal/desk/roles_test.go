package desk_test

import (
	"slices"
	"testing"

	"countersign/internal/desk"
)

// A role that only the policy names can be given to the first who gets it.
func TestRoles_ArePolicysToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got, err := w.desk.Roles(t.Context(), desk.Terminal())
	w.must(err)
	want := []string{"admin", "operator", "builder", "auditor", "approver", "viewer", "finance"}
	if !slices.Equal(got, want) {
		t.Errorf("roles are %q, want %q", got, want)
	}
	_, err = w.desk.Roles(t.Context(), w.principal("dev"))
	w.wantProblem(err, "forbidden")
}
