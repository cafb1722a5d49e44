package desk

import (
	"context"
	"time"

	"countersign/internal/audit"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// now is the time of readings; inside transactions tx.Now is.
func (d *Desk) now() time.Time { return d.db.Now() }

// Ready reports whether the database answers.
func (d *Desk) Ready(ctx context.Context) error {
	return d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		_, err := d.people.Count(ctx, q)
		return err
	})
}

// authenticate checks address and password, counts failures and records both
// ways it can end. Problems: wrong_credentials, too_many_failures, busy.
func (d *Desk) authenticate(ctx context.Context, c identity.Credentials, channel string) (identity.Person, error) {
	var candidate identity.Candidate
	err := d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		candidate, err = d.people.Attempt(ctx, tx, Tenant, c)
		return err
	})
	if err != nil {
		return identity.Person{}, err
	}
	who, wrong := candidate.Check(c.Password)
	if wrong != nil && !problem.HasCode(wrong, "wrong_credentials") {
		return identity.Person{}, wrong // too busy to tell; the attempt counts all the same
	}
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		e := audit.Entry{Tenant: Tenant, Channel: channel, Action: "person.signed_in", Outcome: "ok",
			Actor: audit.Actor{Kind: "person", ID: string(who.ID), Name: who.Name, How: "password"}, Payload: payload(map[string]string{"address": c.Address})}
		if wrong != nil {
			// What was typed is not recorded: it may be a password in the wrong field.
			e.Outcome, e.Actor = "refused: wrong_credentials", audit.Actor{Kind: "unknown", How: "password"}
		} else if err := d.people.Succeeded(ctx, tx, c); err != nil {
			return err
		}
		_, err := d.log.Append(ctx, tx, e)
		return err
	})
	if err != nil {
		return identity.Person{}, err
	}
	return who, wrong
}

// SignIn begins a session and returns its token for the cookie. Problems:
// wrong_credentials, too_many_failures.
func (d *Desk) SignIn(ctx context.Context, c identity.Credentials, agent string) (token string, err error) {
	who, err := d.authenticate(ctx, c, "browser")
	if err != nil {
		return "", err
	}
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		token, err = d.people.Begin(ctx, tx, Tenant, who.ID, c.Address, agent)
		return err
	})
	return token, err
}

// SignOut ends the session of p.
func (d *Desk) SignOut(ctx context.Context, p identity.Principal) error {
	return d.EndSession(ctx, p, p.Session)
}

// EndSession ends one of the sessions of p.
func (d *Desk) EndSession(ctx context.Context, p identity.Principal, session id.Session) error {
	return d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := d.people.End(ctx, tx, p.Person, session); err != nil {
			return err
		}
		d.announce(tx, TopicAccess, "")
		_, err := d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: "person.signed_out", Subject: string(session), Outcome: "ok"}))
		return err
	})
}

// SessionPrincipal returns who holds the session token. Problem: signed_out.
func (d *Desk) SessionPrincipal(ctx context.Context, token string) (p identity.Principal, err error) {
	touch := false
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		p, touch, err = d.people.Session(ctx, q, token, d.now())
		return err
	})
	if err == nil && touch {
		err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error { return d.people.Touch(ctx, tx, p.Session) })
	}
	return p, err
}

// SessionStands reports whether the session of the token has not ended. It is
// no use of the session: what only listens does not keep it alive. Problem:
// signed_out.
func (d *Desk) SessionStands(ctx context.Context, token string) error {
	return d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		_, _, err := d.people.Session(ctx, q, token, d.now())
		return err
	})
}

// TokenPrincipal returns who acts with the token. Problem: invalid_token.
func (d *Desk) TokenPrincipal(ctx context.Context, secret string) (p identity.Principal, err error) {
	err = d.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		p, err = d.people.Token(ctx, q, secret, d.now())
		return err
	})
	return p, err
}

// TerminalPrincipal returns the person who proves at a terminal on the data
// folder who they are. Problems: wrong_credentials, too_many_failures.
func (d *Desk) TerminalPrincipal(ctx context.Context, email, password string) (identity.Principal, error) {
	who, err := d.authenticate(ctx, identity.Credentials{Email: email, Password: password, Address: "terminal"}, "command line")
	if err != nil {
		return identity.Principal{}, err
	}
	return identity.Principal{Tenant: Tenant, Kind: identity.KindPerson, Person: who.ID, Name: who.Name, Email: who.Email, Roles: who.Roles,
		How: "password", Channel: "command line"}, nil
}

// setupOwner acts when there is nobody yet.
var setupOwner = audit.Actor{Kind: "system", ID: "setup", Name: "first start", How: "setup link"}

// NewSetup makes the one-time token of the first start, or "" when people
// exist.
func (d *Desk) NewSetup(ctx context.Context) (token string, err error) {
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		token, err = d.people.NewSetup(ctx, tx)
		if err != nil || token == "" {
			return err
		}
		_, err = d.log.Append(ctx, tx, audit.Entry{Tenant: Tenant, Actor: setupOwner, Channel: "console", Action: "setup.opened", Outcome: "ok"})
		return err
	})
	return token, err
}

// CheckSetup reports whether the setup link works. Problem: setup_closed.
func (d *Desk) CheckSetup(ctx context.Context, token string) error {
	return d.db.View(ctx, func(ctx context.Context, q store.Querier) error { return d.people.CheckSetup(ctx, q, token, d.now()) })
}

// CompleteSetup adds the first administrator. Problems: setup_closed, invalid.
func (d *Desk) CompleteSetup(ctx context.Context, token string, n identity.NewPerson) (p identity.Person, err error) {
	if err := d.CheckSetup(ctx, token); err != nil {
		return p, err
	}
	n.Tenant = Tenant
	ready, err := n.Prepare()
	if err != nil {
		return p, err
	}
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if p, err = d.people.CompleteSetup(ctx, tx, token, ready); err != nil {
			return err
		}
		_, err = d.log.Append(ctx, tx, audit.Entry{Tenant: Tenant, Actor: setupOwner, Channel: "browser", Action: "person.added", Subject: string(p.ID), Outcome: "ok"})
		return err
	})
	return p, err
}

// requireAny returns nil if p has one of the capabilities.
func requireAny(p identity.Principal, doing string, capabilities ...string) (err error) {
	for _, c := range capabilities {
		if err = require(p, c, doing); err == nil {
			return nil
		}
	}
	return err
}

// MayWatch reports whether p may listen to what changes. Problem: forbidden.
func (d *Desk) MayWatch(p identity.Principal) error {
	return requireAny(p, "watch changes", capRunsRead, capApprovalsRead)
}
