package identity_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/testkit"

	"github.com/google/go-cmp/cmp"
)

const tenant = "default"

type fixture struct {
	*identity.Store
	db   *store.DB
	now  time.Time // what the database takes for the time
	path string
}

func open(t *testing.T) *fixture {
	t.Helper()
	line := identity.Migrations
	line.Guarded = nil // no audit log here
	f := &fixture{Store: identity.New(), now: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC), path: t.TempDir() + "/people.db"}
	f.db = testkit.OpenWith(t, store.Options{Path: f.path, Lines: []store.Line{line}, Now: func() time.Time { return f.now }})
	return f
}

func (f *fixture) update(t *testing.T, fn func(ctx context.Context, tx *store.Tx) error) {
	t.Helper()
	if err := f.db.Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) view(t *testing.T, fn func(ctx context.Context, q store.Querier) error) {
	t.Helper()
	if err := f.db.View(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

const password = "correct horse battery"

func (f *fixture) add(t *testing.T, email string, roles ...string) (p identity.Person) {
	t.Helper()
	n, err := identity.NewPerson{Tenant: tenant, Email: email, Name: "Ana", Password: password, Roles: roles}.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	f.update(t, func(ctx context.Context, tx *store.Tx) (err error) {
		p, err = f.Add(ctx, tx, n)
		return err
	})
	return p
}

// signIn does what the desk does, one database step after the other.
func (f *fixture) signIn(t *testing.T, email, pass, address string) error {
	t.Helper()
	c := identity.Credentials{Email: email, Password: pass, Address: address}
	var who identity.Candidate
	err := f.db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		who, err = f.Attempt(ctx, tx, tenant, c)
		return err
	})
	if err != nil {
		return err
	}
	if _, err = who.Check(pass); err == nil {
		f.update(t, func(ctx context.Context, tx *store.Tx) error { return f.Succeeded(ctx, tx, c) })
	}
	return err
}

func TestSignIn_SaysTheSameForEveryWrongHalf(t *testing.T) {
	f := open(t)
	p := f.add(t, "Ana@Example.org", "approver")
	if err := f.signIn(t, " ANA@example.org ", password, "10.0.0.1"); err != nil {
		t.Fatalf("right password: %v", err)
	}
	wrong := f.signIn(t, "ana@example.org", "wrong horse battery", "10.0.0.1")
	unknown := f.signIn(t, "nobody@example.org", password, "10.0.0.1")
	f.update(t, func(ctx context.Context, tx *store.Tx) error { return f.Disable(ctx, tx, p.ID) })
	disabled := f.signIn(t, "ana@example.org", password, "10.0.0.1")
	for name, err := range map[string]error{"wrong": wrong, "unknown": unknown, "disabled": disabled} {
		if !problem.HasCode(err, "wrong_credentials") || err.Error() != wrong.Error() {
			t.Errorf("%s: %v, want the same as %v", name, err, wrong)
		}
	}
}

func TestSignIn_IsLimitedPerAccountFromAnywhere(t *testing.T) {
	f := open(t)
	f.add(t, "ana@example.org")
	var last error
	for i := range 9 {
		last = f.signIn(t, "ana@example.org", "wrong", "10.0.0."+string(rune('1'+i)))
	}
	if !problem.HasCode(last, "too_many_failures") {
		t.Fatalf("ninth wrong sign-in: %v, want too_many_failures", last)
	}
	if err := f.signIn(t, "ana@example.org", password, "10.9.9.9"); !problem.HasCode(err, "too_many_failures") {
		t.Errorf("right password while limited: %v, want too_many_failures", err)
	}
	f.now = f.now.Add(15*time.Minute + time.Second)
	if err := f.signIn(t, "ana@example.org", password, "10.9.9.9"); err != nil {
		t.Errorf("after the window: %v", err)
	}
}

func TestSignIn_IsLimitedPerAddressForAnyAccount(t *testing.T) {
	f := open(t)
	var last error
	for i := range 41 {
		last = f.signIn(t, strings.Repeat("x", i+1)+"@example.org", "wrong", "10.0.0.1")
	}
	if !problem.HasCode(last, "too_many_failures") {
		t.Errorf("41st wrong sign-in of one address: %v, want too_many_failures", last)
	}
}

func TestPassword_Rules(t *testing.T) {
	for pass, why := range map[string]string{"short": "at least", strings.Repeat("x", 257): "at most", "ana@example.org": "must not be"} {
		_, err := identity.NewPerson{Tenant: tenant, Email: "ana@example.org", Name: "Ana", Password: pass}.Prepare()
		if p := problem.From(err); p.Kind != problem.Invalid || len(p.Fields) != 1 || !strings.Contains(p.Fields[0].Message, why) {
			t.Errorf("password %q: %v, want a fault that says %q", pass, err, why)
		}
	}
}

func TestAdd_OneAddressIsOnePerson(t *testing.T) {
	f := open(t)
	f.add(t, "ana@example.org")
	n, err := identity.NewPerson{Tenant: tenant, Email: "ANA@example.org", Name: "Other", Password: password}.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	err = f.db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := f.Add(ctx, tx, n)
		return err
	})
	if !problem.HasCode(err, "email_taken") {
		t.Errorf("second person with the address: %v, want email_taken", err)
	}
}

func TestSession_EndsWithUseTimeAndPerson(t *testing.T) {
	f := open(t)
	p := f.add(t, "ana@example.org", "approver")
	begin := func() (token string) {
		f.update(t, func(ctx context.Context, tx *store.Tx) (err error) {
			token, err = f.Begin(ctx, tx, tenant, p.ID, "10.0.0.1", "browser")
			return err
		})
		return token
	}
	look := func(token string) (who identity.Principal, touch bool, err error) {
		_ = f.db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
			who, touch, err = f.Session(ctx, q, token, f.now)
			return nil
		})
		return who, touch, err
	}
	token := begin()
	who, touch, err := look(token)
	if err != nil || who.Person != p.ID || !slices.Contains(who.Roles, "approver") || touch {
		t.Fatalf("fresh session: %+v, touch %v, %v", who, touch, err)
	}
	if _, _, err := look(token + "x"); !problem.HasCode(err, "signed_out") {
		t.Errorf("unknown token: %v", err)
	}
	f.now = f.now.Add(2 * time.Minute)
	if _, touch, _ := look(token); !touch {
		t.Error("a session used after two minutes is not to be touched")
	}
	f.update(t, func(ctx context.Context, tx *store.Tx) error { return f.Touch(ctx, tx, who.Session) })
	f.now = f.now.Add(11*time.Hour + 59*time.Minute)
	if _, _, err := look(token); err != nil {
		t.Errorf("just within the idle time: %v", err)
	}
	f.now = f.now.Add(time.Minute)
	if _, _, err := look(token); !problem.HasCode(err, "signed_out") {
		t.Errorf("idle: %v, want signed_out", err)
	}
	token = begin()
	f.update(t, func(ctx context.Context, tx *store.Tx) error {
		_, err := f.SetRoles(ctx, tx, tenant, p.ID, nil)
		return err
	})
	if who, _, _ := look(token); slices.Contains(who.Roles, "approver") {
		t.Error("a role that was taken away still counts in an old session")
	}
	f.update(t, func(ctx context.Context, tx *store.Tx) error { return f.Disable(ctx, tx, p.ID) })
	if _, _, err := look(token); !problem.HasCode(err, "signed_out") {
		t.Errorf("disabled: %v, want signed_out", err)
	}
}

func TestSecrets_AreNotInTheDatabase(t *testing.T) {
	f := open(t)
	p := f.add(t, "ana@example.org")
	var session, secret string
	f.update(t, func(ctx context.Context, tx *store.Tx) (err error) {
		if session, err = f.Begin(ctx, tx, tenant, p.ID, "", ""); err != nil {
			return err
		}
		secret, _, err = f.CreateToken(ctx, tx, identity.NewToken{Tenant: tenant, Owner: p.ID, Name: "ci", Scopes: []string{"runs:read"}, Life: time.Hour})
		return err
	})
	dump := testkit.Bytes(t, f.path)
	for name, s := range map[string]string{"password": password, "session": session, "token": secret} {
		if strings.Contains(dump, s) {
			t.Errorf("the %s stands in the database", name)
		}
	}
}

func TestCreateToken_MachinesNeverDecide(t *testing.T) {
	f := open(t)
	p := f.add(t, "ana@example.org")
	cases := []struct {
		name string
		n    identity.NewToken
		ok   bool
	}{
		{"machine that proposes", identity.NewToken{Scopes: []string{"actions:propose"}, Life: time.Hour}, true},
		{"machine that decides", identity.NewToken{Scopes: []string{"approvals:decide"}, Life: time.Hour}, false},
		{"person that decides", identity.NewToken{Personal: true, Scopes: []string{"approvals:decide", "approvals:read"}, Life: 24 * time.Hour}, true},
		{"person that decides for a week", identity.NewToken{Personal: true, Scopes: []string{"approvals:decide"}, Life: 168 * time.Hour}, false},
		{"both proposes and decides", identity.NewToken{Personal: true, Scopes: []string{"approvals:decide", "actions:propose"}, Life: time.Hour}, false},
		{"both starts runs and decides", identity.NewToken{Personal: true, Scopes: []string{"approvals:decide", "runs:write"}, Life: time.Hour}, false},
		{"unknown scope", identity.NewToken{Scopes: []string{"everything"}, Life: time.Hour}, false},
		{"no scope", identity.NewToken{Life: time.Hour}, false},
		{"for ever", identity.NewToken{Scopes: []string{"runs:read"}, Life: 366 * 24 * time.Hour}, false},
		{"no life", identity.NewToken{Scopes: []string{"runs:read"}}, false},
	}
	for _, c := range cases {
		c.n.Tenant, c.n.Owner, c.n.Name = tenant, p.ID, "t"
		err := f.db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, _, err := f.CreateToken(ctx, tx, c.n)
			return err
		})
		if (err == nil) != c.ok {
			t.Errorf("%s: %v, want ok %v", c.name, err, c.ok)
		}
	}
}

func TestToken_ActsAsWhatItIs(t *testing.T) {
	f := open(t)
	p := f.add(t, "ana@example.org", "finance")
	make := func(personal bool, scopes ...string) (secret string, info identity.TokenInfo) {
		f.update(t, func(ctx context.Context, tx *store.Tx) (err error) {
			secret, info, err = f.CreateToken(ctx, tx, identity.NewToken{Tenant: tenant, Owner: p.ID, Name: "bot", Personal: personal, Scopes: scopes, Life: time.Hour})
			return err
		})
		return secret, info
	}
	who := func(secret string) (got identity.Principal, err error) {
		_ = f.db.View(t.Context(), func(ctx context.Context, q store.Querier) error {
			got, err = f.Token(ctx, q, secret, f.now)
			return nil
		})
		return got, err
	}
	machine, info := make(false, "runs:write", "runs:read")
	got, err := who(machine)
	want := identity.Principal{Tenant: tenant, Kind: "machine", Person: p.ID, Name: "bot", Email: "ana@example.org", Roles: []string{"finance"},
		Token: info.ID, Scopes: []string{"runs:read", "runs:write"}, How: "token", Channel: "api"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("machine mismatch (-want +got):\n%s %v", diff, err)
	}
	person, _ := make(true, "approvals:decide")
	if got, _ := who(person); got.Kind != "person" || got.Name != "Ana" {
		t.Errorf("personal token acts as %+v, want the person", got)
	}
	f.update(t, func(ctx context.Context, tx *store.Tx) error { return f.RevokeToken(ctx, tx, tenant, info.ID) })
	if _, err := who(machine); !problem.HasCode(err, "invalid_token") {
		t.Errorf("revoked: %v", err)
	}
	f.now = f.now.Add(time.Hour)
	if _, err := who(person); !problem.HasCode(err, "invalid_token") {
		t.Errorf("expired at its instant: %v", err)
	}
	err = f.db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return f.RevokeToken(ctx, tx, tenant, id.Token("tok_none"))
	})
	if !problem.HasCode(err, "not_found") {
		t.Errorf("revoking an unknown token: %v", err)
	}
}

func TestSetup_WorksOnceAndOnlyWhenNobodyIsHere(t *testing.T) {
	f := open(t)
	var token string
	f.update(t, func(ctx context.Context, tx *store.Tx) (err error) {
		token, err = f.NewSetup(ctx, tx)
		return err
	})
	n, err := identity.NewPerson{Tenant: tenant, Email: "root@example.org", Name: "Root", Password: password}.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	complete := func(token string) error {
		return f.db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := f.CompleteSetup(ctx, tx, token, n)
			return err
		})
	}
	if err := complete("guess"); !problem.HasCode(err, "setup_closed") {
		t.Errorf("a guess: %v", err)
	}
	if err := complete(token); err != nil {
		t.Fatal(err)
	}
	if err := complete(token); !problem.HasCode(err, "setup_closed") {
		t.Errorf("used twice: %v", err)
	}
	f.update(t, func(ctx context.Context, tx *store.Tx) error {
		again, err := f.NewSetup(ctx, tx)
		if again != "" {
			t.Error("a setup token is made though somebody is here")
		}
		return err
	})
	f.view(t, func(ctx context.Context, q store.Querier) error {
		p, err := f.ByEmail(ctx, q, tenant, "root@example.org")
		if !p.Active || len(p.Roles) == 0 || p.Roles[0] != "admin" {
			t.Errorf("first person = %+v", p)
		}
		return err
	})
}
