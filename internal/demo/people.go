package demo

import (
	"context"
	"fmt"
	"time"

	"countersign/internal/desk"
	"countersign/internal/identity"
	"countersign/internal/problem"
)

// Passphrase is everybody's. It is known and fixed because the demo answers
// on this machine only.
const Passphrase = "countersign demo"

// Account is somebody who can sign in.
type Account struct {
	Email    string   `json:"email"`
	Password string   `json:"password"`
	Roles    []string `json:"roles"`
	Name     string   `json:"-"`
	Can      string   `json:"-"` // what to sign in as them for
}

// accounts are the people of the demo.
func accounts() []Account {
	return []Account{
		{"ana@demo.example", Passphrase, []string{"approver", "finance", "operator"}, "Ana Lindqvist", "decides everything here, settles unknown outcomes"},
		{"ben@demo.example", Passphrase, []string{"approver", "finance"}, "Ben Okafor", "decides refunds and pages; the second person for large refunds"},
		{"chloe@demo.example", Passphrase, []string{"admin", "auditor"}, "Chloe Marchetti", "reads the audit log, adds people"},
		{"dev@demo.example", Passphrase, []string{"builder"}, "Dev Patel", "starts runs; never decides on what they started"},
	}
}

// populate finds or adds the people and makes new tokens.
func (d *Demo) populate(ctx context.Context) (err error) {
	d.Accounts, d.Tokens = accounts(), map[string]string{}
	people := map[string]identity.Person{}
	for _, a := range d.Accounts {
		if people[a.Email], err = d.person(ctx, a); err != nil {
			return fmt.Errorf("add %s: %w", a.Name, err)
		}
	}
	dev, ana := people["dev@demo.example"], people["ana@demo.example"]
	tokens := map[string]identity.NewToken{
		// A machine's requests are shown under its token's name.
		"agent": {Name: "Dev's support agent", Owner: dev.ID, Life: 30 * 24 * time.Hour,
			Scopes: []string{"runs:write", "runs:read", "actions:propose", "approvals:read"}},
		"operator": {Name: "demo operator", Owner: ana.ID, Personal: true, Life: 24 * time.Hour,
			Scopes: []string{"runs:read", "approvals:read", "approvals:decide", "operate", "audit:read"}},
	}
	for name, t := range tokens {
		if d.Tokens[name], err = d.renew(ctx, t); err != nil {
			return fmt.Errorf("make the token %s: %w", name, err)
		}
	}
	agent, err := d.Instance.Desk.TokenPrincipal(ctx, d.Tokens["agent"])
	d.cast = cast{agent: agent, ana: scripted(ana), ben: scripted(people["ben@demo.example"])}
	return err
}

// person finds the account's person or adds them. Whoever is there keeps the
// roles and the password they have by now.
func (d *Demo) person(ctx context.Context, a Account) (identity.Person, error) {
	p, err := d.Instance.Desk.PersonByEmail(ctx, desk.Terminal(), a.Email)
	if !problem.HasCode(err, "not_found") {
		return p, err
	}
	return d.Instance.Desk.AddPerson(ctx, desk.Terminal(), identity.NewPerson{Email: a.Email, Name: a.Name, Password: a.Password, Roles: a.Roles})
}

// renew makes the token in place of the one of an earlier start, whose secret
// was shown once and is stored nowhere.
func (d *Demo) renew(ctx context.Context, n identity.NewToken) (secret string, err error) {
	all, err := d.Instance.Desk.Tokens(ctx, desk.Terminal(), true)
	if err != nil {
		return "", err
	}
	for _, t := range all {
		if t.Name != n.Name || t.Owner != n.Owner || !t.Revoked.IsZero() {
			continue
		}
		if err := d.Instance.Desk.RevokeToken(ctx, desk.Terminal(), t.ID); err != nil {
			return "", err
		}
	}
	secret, _, err = d.Instance.Desk.CreateToken(ctx, desk.Terminal(), n)
	return secret, err
}

// scripted is the person acting by the demo's script; the audit log says so.
func scripted(p identity.Person) identity.Principal {
	return identity.Principal{Tenant: desk.Tenant, Kind: identity.KindPerson, Person: p.ID, Name: p.Name, Email: p.Email, Roles: p.Roles,
		How: "demo script", Channel: "demo"}
}
