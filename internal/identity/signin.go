package identity

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"countersign/internal/problem"
	"countersign/internal/store"
)

// Limits of wrong sign-ins in one window, per account and per address. The
// address limit is higher because many people may share one.
const (
	failureWindow     = 15 * time.Minute
	failuresPerEmail  = 8
	failuresPerSource = 40
)

// dummyHash is what the password of an unknown address is compared with, so
// that both answers take the same time. It matches nothing.
const dummyHash = ""

// Credentials are what somebody signs in with.
type Credentials struct {
	Email, Password string
	Address         string // of the peer
}

// errWrong is the one answer to every wrong sign-in: it does not say which
// half was wrong.
var errWrong = problem.New(problem.Unauthenticated, "wrong_credentials", "The address or the password is wrong. Nothing else is said, so that nobody can find out who is here.")

// Attempt counts a sign-in against its account and address, and reads what
// checking the password needs. It counts before the password is hashed, so
// that many at once do not slip under the limit together; Succeeded takes it
// back. Problem: too_many_failures, and then nothing is counted.
func (s *Store) Attempt(ctx context.Context, tx *store.Tx, tenant string, c Credentials) (Candidate, error) {
	now, old := store.Micros(tx.Now()), store.Micros(tx.Now().Add(-failureWindow))
	if _, err := tx.Exec(ctx, sqlForgetOld, old); err != nil {
		return Candidate{}, fmt.Errorf("forget old sign-in failures: %w", err)
	}
	for _, w := range c.counted() {
		n, since, err := failures(ctx, tx, w.what)
		if err != nil {
			return Candidate{}, err
		}
		if n >= w.limit {
			return Candidate{}, tooMany(since.Add(failureWindow).Sub(tx.Now()))
		}
		if _, err := tx.Exec(ctx, sqlCountFailure, w.what, now); err != nil {
			return Candidate{}, fmt.Errorf("count sign-in: %w", err)
		}
	}
	p, hash, err := s.one(ctx, tx, tenant, "email = $1", strings.ToLower(strings.TrimSpace(c.Email)))
	if problem.HasCode(err, "not_found") {
		return Candidate{hash: dummyHash}, nil
	}
	return Candidate{person: p, hash: hash}, err
}

func tooMany(left time.Duration) error {
	return problem.New(problem.RateLimited, "too_many_failures",
		"Too many wrong sign-ins. Wait %d minutes and try again.", int(left/time.Minute)+1).With("retry_after_seconds", int(left/time.Second)+1)
}

// Candidate is whoever the address belongs to, if anybody.
type Candidate struct {
	person Person
	hash   string
}

// Check compares the password, which takes tens of milliseconds: not inside a
// transaction. It returns the person, or the one problem wrong_credentials.
// Problem: busy, when too many sign in at once.
func (c Candidate) Check(password string) (Person, error) {
	if len(password) > passwordBytesMax {
		password = ""
	}
	ok, err := matches(password, c.hash)
	if err != nil {
		return Person{}, err
	}
	if !ok || !c.person.Active {
		return Person{}, errWrong
	}
	return c.person, nil
}

type counted struct {
	what  string
	limit int
}

// counted lists what a sign-in counts against. Without an address, as on a
// page of somebody who is signed in, that is the account alone.
func (c Credentials) counted() []counted {
	email := strings.ToLower(strings.TrimSpace(c.Email))
	if len(email) > 254 {
		email = email[:254]
	}
	all := []counted{{"email " + email, failuresPerEmail}}
	if c.Address != "" {
		all = append(all, counted{"address " + network(c.Address), failuresPerSource})
	}
	return all
}

// network is what one visitor can be held to: an IPv4 address, and of IPv6
// the /64 that a single machine has at its disposal.
func network(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a.String()
	}
	return netip.PrefixFrom(a, 64).Masked().String()
}

func failures(ctx context.Context, q store.Querier, what string) (n int, since time.Time, err error) {
	var micros int64
	err = q.QueryRow(ctx, `SELECT count, since FROM sign_in_failure WHERE what = $1`, what).Scan(&n, &micros)
	if errors.Is(err, store.ErrNotFound) {
		return 0, time.Time{}, nil
	}
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("read sign-in failures: %w", err)
	}
	return n, store.FromMicros(micros), nil
}

const (
	sqlCountFailure = `INSERT INTO sign_in_failure (what, count, since) VALUES ($1, 1, $2) ON CONFLICT (what) DO UPDATE SET count = count + 1`
	sqlForgetOld    = `DELETE FROM sign_in_failure WHERE since <= $1`
	sqlForgetEmail  = `DELETE FROM sign_in_failure WHERE what = $1`
	sqlTakeBack     = `UPDATE sign_in_failure SET count = count - 1 WHERE what = $1 AND count > 0`
)

// Succeeded forgets the account's wrong sign-ins; the address keeps its own,
// without this one.
func (s *Store) Succeeded(ctx context.Context, tx *store.Tx, c Credentials) error {
	counted := c.counted()
	if _, err := tx.Exec(ctx, sqlForgetEmail, counted[0].what); err != nil {
		return fmt.Errorf("forget sign-in failures: %w", err)
	}
	for _, w := range counted[1:] {
		if _, err := tx.Exec(ctx, sqlTakeBack, w.what); err != nil {
			return fmt.Errorf("forget sign-in failures: %w", err)
		}
	}
	return nil
}
