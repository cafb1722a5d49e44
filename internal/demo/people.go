package demo

import (
	"context"
	"fmt"
	"time"

	"countersign/internal/desk"
	"countersign/internal/id"
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
func (d *Demo) populate(ctx context.Context) error {
	d.Accounts, d.Tokens = accounts(), map[string]string{}
	people := map[string]identity.Person{}
	for _, a := range d.Accounts {
		p, err := d.person(ctx, a)
		if err != nil {
			return fmt.Errorf("add %s: %w", a.Name, err)
		}
		people[a.Email] = p
	}
	dev, ana := people["dev@demo.example"], people["ana@demo.example"]
	if err := d.revokeOld(ctx, map[string]id.Person{"agent": dev.ID, "operator": ana.ID}); err != nil {
		return fmt.Errorf("revoke the tokens of the last start: %w", err)
	}
	for _, t := range []identity.NewToken{
		{Name: "agent", Owner: dev.ID, Life: 30 * 24 * time.Hour, Scopes: []string{"runs:write", "runs:read", "actions:propose", "approvals:read"}},
		{Name: "operator", Owner: ana.ID, Personal: true, Life: 24 * time.Hour,
			Scopes: []string{"runs:read", "approvals:read", "approvals:decide", "operate", "audit:read"}},
	} {
		secret, _, err := d.Instance.Desk.CreateToken(ctx, desk.Terminal(), t)
		if err != nil {
			return fmt.Errorf("make the token %s: %w", t.Name, err)
		}
		d.Tokens[t.Name] = secret
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

// revokeOld ends the tokens of earlier starts, by name and owner: their
// secrets were shown once and are stored nowhere.
func (d *Demo) revokeOld(ctx context.Context, owners map[string]id.Person) error {
	all, err := d.Instance.Desk.Tokens(ctx, desk.Terminal(), true)
	if err != nil {
		return err
	}
	for _, t := range all {
		if owner, ours := owners[t.Name]; !ours || t.Owner != owner || !t.Revoked.IsZero() {
			continue
		}
		if err := d.Instance.Desk.RevokeToken(ctx, desk.Terminal(), t.ID); err != nil {
			return err
		}
	}
	return nil
}

// scripted is the person acting by the demo's script; the audit log says so.
func scripted(p identity.Person) identity.Principal {
	return identity.Principal{Tenant: desk.Tenant, Kind: identity.KindPerson, Person: p.ID, Name: p.Name, Email: p.Email, Roles: p.Roles,
		How: "demo script", Channel: "demo"}
}
