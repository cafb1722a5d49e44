package desk

import (
	"context"
	"strings"

	"countersign/internal/audit"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// Terminal is whoever holds the data folder: administration from its command
// line acts as this, since the folder itself is the authority.
func Terminal() identity.Principal {
	return identity.Principal{Tenant: Tenant, Kind: identity.KindPerson, Person: "terminal", Name: "command line", Roles: []string{"admin"},
		How: "data folder", Channel: "command line"}
}

// People lists everybody. Problem: forbidden.
func (d *Desk) People(ctx context.Context, p identity.Principal) (out []identity.Person, err error) {
	if err := require(p, capAdmin, "see people"); err != nil {
		return nil, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		out, err = d.people.List(ctx, q, Tenant)
		return err
	})
	return out, err
}

// AddPerson adds somebody. Problems: forbidden, invalid, email_taken.
func (d *Desk) AddPerson(ctx context.Context, p identity.Principal, n identity.NewPerson) (added identity.Person, err error) {
	if err := require(p, capAdmin, "add people"); err != nil {
		return added, err
	}
	n.Tenant = Tenant
	ready, err := n.Prepare()
	if err != nil {
		return added, err
	}
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if added, err = d.people.Add(ctx, tx, ready); err != nil {
			return err
		}
		_, err = d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: "person.added", Subject: string(added.ID), Outcome: strings.Join(added.Roles, " ")}))
		return err
	})
	return added, err
}

// SetRoles replaces somebody's roles. Problems: forbidden, invalid,
// not_found, last_admin.
func (d *Desk) SetRoles(ctx context.Context, p identity.Principal, person id.Person, roles []string) error {
	return d.changePerson(ctx, p, person, "person.roles", strings.Join(roles, " "), func(ctx context.Context, tx *store.Tx) error {
		_, err := d.people.SetRoles(ctx, tx, Tenant, person, roles)
		return err
	})
}

// SetActive disables or enables somebody; disabling ends their sessions and
// tokens. Problems: forbidden, not_found, last_admin.
func (d *Desk) SetActive(ctx context.Context, p identity.Principal, person id.Person, active bool) error {
	action := "person.disabled"
	if active {
		action = "person.enabled"
	}
	return d.changePerson(ctx, p, person, action, "ok", func(ctx context.Context, tx *store.Tx) error {
		if active {
			return d.people.Enable(ctx, tx, person)
		}
		return d.people.Disable(ctx, tx, person)
	})
}

func (d *Desk) changePerson(ctx context.Context, p identity.Principal, person id.Person, action, outcome string, change func(ctx context.Context, tx *store.Tx) error) error {
	if err := require(p, capAdmin, "change people"); err != nil {
		return err
	}
	return d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := d.people.Person(ctx, tx, Tenant, person); err != nil {
			return err
		}
		none := d.someAdmin(ctx, tx) // nobody to lose: a folder that is only operated from here
		if err := change(ctx, tx); err != nil {
			return err
		}
		if err := d.someAdmin(ctx, tx); err != nil && none == nil {
			return err
		}
		_, err := d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: action, Subject: string(person), Outcome: outcome}))
		d.announce(tx, TopicAccess, "")
		d.announce(tx, TopicApprovals, "")
		return err
	})
}

// someAdmin refuses a change after which nobody could administer.
func (d *Desk) someAdmin(ctx context.Context, q store.Querier) error {
	admins, err := d.people.WithRole(ctx, q, Tenant, "admin")
	if err != nil {
		return err
	}
	for _, a := range admins {
		if a.Active {
			return nil
		}
	}
	return problem.New(problem.Conflict, "last_admin", "Then nobody could administer this console. Make somebody else an administrator first.")
}

// PersonByEmail finds somebody by address. Problems: forbidden, not_found.
func (d *Desk) PersonByEmail(ctx context.Context, p identity.Principal, email string) (who identity.Person, err error) {
	if err := require(p, capAdmin, "see people"); err != nil {
		return who, err
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		who, err = d.people.ByEmail(ctx, q, Tenant, email)
		return err
	})
	return who, err
}

// fromFolder reports whether p is whoever holds the data folder.
func fromFolder(p identity.Principal) bool {
	return p.Person == Terminal().Person && p.Token == "" && p.Session == "" && p.Channel == Terminal().Channel
}

// CreateToken makes a token. Administrators make tokens of machines. A
// personal token acts as its owner, so nobody makes one for somebody else, and
// no token makes one: a machine's could turn itself into a person that way.
// The exception is whoever holds the data folder. Problems: forbidden,
// invalid.
func (d *Desk) CreateToken(ctx context.Context, p identity.Principal, n identity.NewToken) (secret string, info identity.TokenInfo, err error) {
	own := n.Personal && n.Owner == p.Person && p.Token == ""
	if n.Personal && !own && !fromFolder(p) {
		return "", info, problem.New(problem.Forbidden, "forbidden", "A personal token acts as its owner: only the owner makes it, signed in with the password.")
	}
	if !own {
		if err := require(p, capAdmin, "make tokens for others or for machines"); err != nil {
			return "", info, err
		}
	}
	n.Tenant = Tenant
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if secret, info, err = d.people.CreateToken(ctx, tx, n); err != nil {
			return err
		}
		_, err = d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: "token.created", Subject: string(info.ID), Outcome: strings.Join(info.Scopes, " ")}))
		return err
	})
	return secret, info, err
}

// RevokeToken ends a token: one's own, or any for an administrator. Problems:
// forbidden, not_found.
func (d *Desk) RevokeToken(ctx context.Context, p identity.Principal, t id.Token) error {
	return d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		own, err := d.people.Tokens(ctx, tx, Tenant, p.Person)
		if err != nil {
			return err
		}
		mine := false
		for _, o := range own {
			mine = mine || o.ID == t
		}
		if !mine {
			if err := require(p, capAdmin, "revoke the tokens of others"); err != nil {
				return err
			}
		}
		if err := d.people.RevokeToken(ctx, tx, Tenant, t); err != nil {
			return err
		}
		d.announce(tx, TopicAccess, "")
		_, err = d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: "token.revoked", Subject: string(t), Outcome: "ok"}))
		return err
	})
}

// Tokens lists the tokens of p, or everybody's for an administrator.
func (d *Desk) Tokens(ctx context.Context, p identity.Principal, all bool) (out []identity.TokenInfo, err error) {
	owner := p.Person
	if all {
		if err := require(p, capAdmin, "see the tokens of others"); err != nil {
			return nil, err
		}
		owner = ""
	}
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		out, err = d.people.Tokens(ctx, q, Tenant, owner)
		return err
	})
	return out, err
}

// Sessions lists the sessions of p.
func (d *Desk) Sessions(ctx context.Context, p identity.Principal) (out []identity.Session, err error) {
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		out, err = d.people.Sessions(ctx, q, p.Person)
		return err
	})
	return out, err
}

// ChangePassword sets a new password of p, who proves the old one; every
// session ends. Problems: wrong_credentials, invalid.
func (d *Desk) ChangePassword(ctx context.Context, p identity.Principal, old, new string) error {
	if _, err := d.authenticate(ctx, identity.Credentials{Email: p.Email, Password: old}, p.Channel); err != nil {
		return err
	}
	hash, err := identity.HashNew(new, p.Email)
	if err != nil {
		return err
	}
	return d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := d.people.SetPassword(ctx, tx, p.Person, hash); err != nil {
			return err
		}
		d.announce(tx, TopicAccess, "")
		_, err := d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: "person.password_changed", Subject: string(p.Person), Outcome: "ok"}))
		return err
	})
}
