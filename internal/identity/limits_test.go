package identity_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
)

func TestSignIn_ManyAtOnce_DoNotSlipUnderTheLimitTogether(t *testing.T) {
	f := open(t)
	f.add(t, "ana@example.org")
	var wait sync.WaitGroup
	var mu sync.Mutex
	checked := 0
	for i := range 40 {
		wait.Go(func() {
			c := identity.Credentials{Email: "ana@example.org", Password: "wrong", Address: fmt.Sprint("10.0.0.", i)}
			err := f.db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				_, err := f.Attempt(ctx, tx, tenant, c)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				checked++
			} else if !problem.HasCode(err, "too_many_failures") {
				t.Errorf("attempt: %v", err)
			}
		})
	}
	wait.Wait()
	if checked != 8 {
		t.Errorf("%d passwords of one account may be tried at once, want 8", checked)
	}
}

func TestSignIn_RightPasswords_DoNotCountAgainstTheirAddress(t *testing.T) {
	f := open(t)
	f.add(t, "ana@example.org")
	c := identity.Credentials{Email: "ana@example.org", Password: password, Address: "10.0.0.1"}
	for range 45 { // more than an address may fail
		f.update(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := f.Attempt(ctx, tx, tenant, c)
			return err
		})
		f.update(t, func(ctx context.Context, tx *store.Tx) error { return f.Succeeded(ctx, tx, c) })
	}
}

func TestSignIn_OneMachineOfIPv6_IsOneAddress(t *testing.T) {
	f := open(t)
	var last error
	for i := range 41 {
		last = f.db.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := f.Attempt(ctx, tx, tenant, identity.Credentials{Email: fmt.Sprintf("x%d@example.org", i), Address: fmt.Sprintf("2001:db8::%x", i+1)})
			return err
		})
	}
	if !problem.HasCode(last, "too_many_failures") {
		t.Errorf("41st wrong sign-in of one /64: %v, want too_many_failures", last)
	}
	if err := f.signIn(t, "other@example.org", "wrong", "2001:db8:0:1::1"); !problem.HasCode(err, "wrong_credentials") {
		t.Errorf("another /64: %v, want wrong_credentials", err)
	}
}

func TestPassword_IsTheSameOnEveryKeyboard(t *testing.T) {
	f := open(t)
	composed, decomposed := "gar\u00e7on caf\u00e9 noir", "garc\u0327on cafe\u0301 noir"
	n, err := identity.NewPerson{Tenant: tenant, Email: "ana@example.org", Name: "Ana", Password: decomposed}.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	f.update(t, func(ctx context.Context, tx *store.Tx) error {
		_, err := f.Add(ctx, tx, n)
		return err
	})
	for _, p := range []string{composed, decomposed} {
		if err := f.signIn(t, "ana@example.org", p, "10.0.0.1"); err != nil {
			t.Errorf("password %+q: %v", p, err)
		}
	}
}

func TestPrepare_NamesAndAddressesThatMislead(t *testing.T) {
	good := identity.NewPerson{Tenant: tenant, Email: "ana@example.org", Name: "Ana", Password: password}
	for name, change := range map[string]func(n *identity.NewPerson){
		"right-to-left override": func(n *identity.NewPerson) { n.Name = "Ana \u202egro" },
		"a bell":                 func(n *identity.NewPerson) { n.Name = "Ana\a" },
		"broken text":            func(n *identity.NewPerson) { n.Name = "Ana\xff" },
		"no name":                func(n *identity.NewPerson) { n.Name = " \t" },
		"a long name":            func(n *identity.NewPerson) { n.Name = strings.Repeat("a", 101) },
		"an invisible address":   func(n *identity.NewPerson) { n.Email = "ana\u200b@example.org" },
		"two addresses":          func(n *identity.NewPerson) { n.Email = "a@example.org@example.org" },
		"no address":             func(n *identity.NewPerson) { n.Email = "ana" },
		"a role in capitals":     func(n *identity.NewPerson) { n.Roles = []string{"Admin"} },
		"a long role":            func(n *identity.NewPerson) { n.Roles = []string{strings.Repeat("a", 33)} },
	} {
		n := good
		change(&n)
		if _, err := n.Prepare(); problem.From(err).Kind != problem.Invalid {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
	good.Name = "Zoë O’Neil-Nguyễn"
	if _, err := good.Prepare(); err != nil {
		t.Errorf("%s: %v", good.Name, err)
	}
}

func TestSetPassword_EndsWhatTheOldOneOpened(t *testing.T) {
	f := open(t)
	p := f.add(t, "ana@example.org")
	var session, personal, machine string
	f.update(t, func(ctx context.Context, tx *store.Tx) (err error) {
		if session, err = f.Begin(ctx, tx, tenant, p.ID, "", ""); err != nil {
			return err
		}
		n := identity.NewToken{Tenant: tenant, Owner: p.ID, Name: "t", Scopes: []string{"runs:read"}, Life: time.Hour}
		if machine, _, err = f.CreateToken(ctx, tx, n); err != nil {
			return err
		}
		n.Personal = true
		personal, _, err = f.CreateToken(ctx, tx, n)
		return err
	})
	hash, err := identity.HashNew("another long passphrase", p.Email)
	if err != nil {
		t.Fatal(err)
	}
	f.update(t, func(ctx context.Context, tx *store.Tx) error { return f.SetPassword(ctx, tx, p.ID, hash) })
	f.view(t, func(ctx context.Context, q store.Querier) error {
		if _, _, err := f.Session(ctx, q, session, f.now); !problem.HasCode(err, "signed_out") {
			t.Errorf("session: %v, want signed_out", err)
		}
		if _, err := f.Token(ctx, q, personal, f.now); !problem.HasCode(err, "invalid_token") {
			t.Errorf("personal token: %v, want invalid_token", err)
		}
		if _, err := f.Token(ctx, q, machine, f.now); err != nil {
			t.Errorf("a machine's token: %v", err)
		}
		return nil
	})
	if err := f.signIn(t, "ana@example.org", password, "10.0.0.1"); !problem.HasCode(err, "wrong_credentials") {
		t.Errorf("old password: %v", err)
	}
	if err := f.signIn(t, "ana@example.org", "another long passphrase", "10.0.0.1"); err != nil {
		t.Errorf("new password: %v", err)
	}
}

func TestBegin_ForgetsOldSessionsAndBoundsThoseOfAPerson(t *testing.T) {
	f := open(t)
	ana, ben := f.add(t, "ana@example.org"), f.add(t, "ben@example.org")
	begin := func(p id.Person) (token string) {
		f.update(t, func(ctx context.Context, tx *store.Tx) (err error) {
			token, err = f.Begin(ctx, tx, tenant, p, "10.0.0.1", strings.Repeat("é", 300)+"\xff")
			return err
		})
		return token
	}
	sessions := func(p id.Person) (n int) {
		f.view(t, func(ctx context.Context, q store.Querier) error {
			all, err := f.Sessions(ctx, q, p)
			n = len(all)
			return err
		})
		return n
	}
	begin(ben.ID)
	f.now = f.now.Add(13 * time.Hour) // idle
	first := begin(ana.ID)
	if n := sessions(ben.ID); n != 0 {
		t.Errorf("%d sessions that are over are kept", n)
	}
	for range 50 {
		f.now = f.now.Add(time.Second)
		begin(ana.ID)
	}
	if n := sessions(ana.ID); n != 50 {
		t.Errorf("somebody has %d sessions, want at most 50", n)
	}
	f.view(t, func(ctx context.Context, q store.Querier) error {
		if _, _, err := f.Session(ctx, q, first, f.now); !problem.HasCode(err, "signed_out") {
			t.Errorf("the oldest session: %v, want signed_out", err)
		}
		return nil
	})
}

func TestPeople_NobodyIsNotFound(t *testing.T) {
	f := open(t)
	for name, change := range map[string]func(ctx context.Context, tx *store.Tx) error{
		"disable":  func(ctx context.Context, tx *store.Tx) error { return f.Disable(ctx, tx, "usr_none") },
		"enable":   func(ctx context.Context, tx *store.Tx) error { return f.Enable(ctx, tx, "usr_none") },
		"password": func(ctx context.Context, tx *store.Tx) error { return f.SetPassword(ctx, tx, "usr_none", "x") },
		"roles": func(ctx context.Context, tx *store.Tx) error {
			_, err := f.SetRoles(ctx, tx, tenant, "usr_none", []string{"admin"})
			return err
		},
	} {
		if err := f.db.Update(t.Context(), change); !problem.HasCode(err, "not_found") {
			t.Errorf("%s: %v, want not_found", name, err)
		}
	}
}

func TestSetup_TokenIsOverAfterADay(t *testing.T) {
	f := open(t)
	var token string
	f.update(t, func(ctx context.Context, tx *store.Tx) (err error) {
		token, err = f.NewSetup(ctx, tx)
		return err
	})
	for after, want := range map[time.Duration]bool{24*time.Hour - time.Microsecond: true, 24 * time.Hour: false} {
		f.view(t, func(ctx context.Context, q store.Querier) error {
			if err := f.CheckSetup(ctx, q, token, f.now.Add(after)); (err == nil) != want {
				t.Errorf("after %v: %v, want it to work: %v", after, err, want)
			}
			return nil
		})
	}
}
