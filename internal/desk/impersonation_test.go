package desk_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"countersign/internal/audit"
	"countersign/internal/identity"
)

// A personal token decides as its owner. An administrator who could make one
// for somebody else would decide in that person's name.
func TestToken_PersonalOnesAreMadeByTheirOwnerAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	chloe, ben := w.principal("chloe"), w.principal("ben") // chloe administers
	n := identity.NewToken{Owner: ben.Person, Name: "as ben", Personal: true, Life: time.Hour, Scopes: []string{"approvals:decide"}}
	_, _, err := w.desk.CreateToken(t.Context(), chloe, n)
	w.wantProblem(err, "forbidden")
	_, _, err = w.desk.CreateToken(t.Context(), ben, n)
	w.must(err)
	n.Personal, n.Scopes = false, []string{"runs:read"}
	_, _, err = w.desk.CreateToken(t.Context(), chloe, n)
	w.must(err)
}

// A machine never decides: also not by way of a token that it makes.
func TestToken_NoTokenMakesAPersonalOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, personal := range []bool{false, true} {
		p, err := w.desk.TokenPrincipal(t.Context(), w.token("chloe", personal, "admin"))
		w.must(err)
		_, _, err = w.desk.CreateToken(t.Context(), p, identity.NewToken{Owner: p.Person, Name: "more", Personal: true, Life: time.Hour, Scopes: []string{"approvals:decide"}})
		w.wantProblem(err, "forbidden")
	}
}

func TestPosture_ALogThatDoesNotFitItsCopiedHeads_Failed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.close()
	w.must(os.WriteFile(filepath.Join(w.dir, audit.HeadFile), []byte("{"), 0o644))
	w.open()
	w.eventually(func() (bool, string) {
		p, err := w.desk.Posture(t.Context())
		w.must(err)
		return p.Failed, "the posture is fine"
	})
}
