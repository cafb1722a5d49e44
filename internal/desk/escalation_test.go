package desk_test

import (
	"testing"
	"time"

	"countersign/internal/identity"
)

// A personal token acts as its owner: it never may more than they may.
func TestToken_ScopesOfAPersonalToken_NeverExceedItsOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ben := w.principal("ben") // decides; neither administers nor operates nor audits
	secret, _, err := w.desk.CreateToken(t.Context(), ben, identity.NewToken{Owner: ben.Person, Name: "mine", Personal: true, Life: time.Hour,
		Scopes: []string{"admin", "operate", "audit:read", "runs:write", "runs:read"}})
	w.must(err)
	p, err := w.desk.TokenPrincipal(t.Context(), secret)
	w.must(err)
	w.wantProblem(w.desk.SetRoles(t.Context(), p, ben.Person, []string{"admin", "finance"}), "forbidden")
	_, err = w.desk.Verify(t.Context(), p)
	w.wantProblem(err, "forbidden")
	_, err = w.desk.People(t.Context(), p)
	w.wantProblem(err, "forbidden")
	_, err = w.desk.Counts(t.Context(), p)
	w.must(err)
}

// A token that a person may have is over once the role behind it is.
func TestToken_OfAPersonWhoLostTheRole_LosesItToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.token("ana", true, "operate", "runs:read")
	ana := w.principal("ana")
	w.must(w.desk.SetRoles(t.Context(), w.principal("chloe"), ana.Person, []string{"approver"}))
	p, err := w.desk.TokenPrincipal(t.Context(), token)
	w.must(err)
	_, err = w.desk.AskTarget(t.Context(), p, "eff_none")
	w.wantProblem(err, "forbidden")
}
