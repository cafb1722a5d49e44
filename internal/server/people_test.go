package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"countersign/internal/desk"
	"countersign/internal/identity"
)

func TestPeople_SomebodyAddedHasTheRolesThatWereTicked(t *testing.T) {
	s := newSite(t)
	form := url.Values{"name": {"Eva"}, "email": {"eva@example.org"}, "password": {"correct horse eva"}, "role": {"builder", "viewer"}}
	s.want("add", s.send("chloe", http.MethodPost, "/people", form), http.StatusSeeOther)
	eva, err := s.inst.Desk.PersonByEmail(t.Context(), desk.Terminal(), "eva@example.org")
	s.must(err)
	if got := strings.Join(eva.Roles, " "); got != "builder viewer" {
		t.Errorf("she has the roles %q, want builder and viewer", got)
	}
	form.Set("email", "no address")
	w := s.send("chloe", http.MethodPost, "/people", form)
	s.want("a fault", w, http.StatusUnprocessableEntity)
	_, add, _ := strings.Cut(w.Body.String(), `action="/people"`)
	if n := strings.Count(add, " checked"); n != 2 {
		t.Errorf("%d roles are ticked after a fault, want the 2 that were", n)
	}
}

func TestPeople_RevokingATokenThereStaysThere(t *testing.T) {
	s := newSite(t)
	_, info, err := s.inst.Desk.CreateToken(t.Context(), desk.Terminal(), identity.NewToken{Owner: s.principal("dev").Person, Name: "ci", Scopes: []string{"runs:read"}, Life: time.Hour})
	s.must(err)
	revoke := "/tokens/" + string(info.ID) + "/revoke?from=people"
	s.want("people", s.get("chloe", "/people"), http.StatusOK, revoke)
	if to := s.post("chloe", revoke).Header().Get("Location"); to != "/people" {
		t.Errorf("revoking leads to %q, want /people", to)
	}
}
