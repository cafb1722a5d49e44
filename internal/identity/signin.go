package identity

import (
	"context"
	"errors"
	"fmt"
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

// Look reads what a sign-in needs to know before the password is hashed.
// Problem: too_many_failures.
func (s *Store) Look(ctx context.Context, q store.Querier, tenant string, c Credentials, now time.Time) (Candidate, error) {
	for _, w := range c.counted() {
		n, since, err := failures(ctx, q, w.what)
		if err != nil {
			return Candidate{}, err
		}
		if left := since.Add(failureWindow).Sub(now); n >= w.limit && left > 0 {
			return Candidate{}, problem.New(problem.RateLimited, "too_many_failures",
				"Too many wrong sign-ins. Wait %d minutes and try again.", int(left/time.Minute)+1).With("retry_after_seconds", int(left/time.Second)+1)
		}
	}
	p, hash, err := s.one(ctx, q, tenant, "email = $1", strings.ToLower(strings.TrimSpace(c.Email)))
	if problem.HasCode(err, "not_found") {
		return Candidate{hash: dummyHash}, nil
	}
	return Candidate{person: p, hash: hash}, err
}

// Candidate is whoever the address belongs to, if anybody.
type Candidate struct {
	person Person
	hash   string
}

// Check compares the password, which takes tens of milliseconds: not inside a
// transaction. It returns the person, or the one problem wrong_credentials.
func (c Candidate) Check(password string) (Person, error) {
	if len(password) > passwordBytesMax {
		password = ""
	}
	if !matches(password, c.hash) || !c.person.Active {
		return Person{}, errWrong
	}
	return c.person, nil
}

type counted struct {
	what  string
	limit int
}

func (c Credentials) counted() []counted {
	email := strings.ToLower(strings.TrimSpace(c.Email))
	if len(email) > 254 {
		email = email[:254]
	}
	return []counted{{"email " + email, failuresPerEmail}, {"address " + c.Address, failuresPerSource}}
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
	sqlCountFailure = `INSERT INTO sign_in_failure (what, count, since) VALUES ($1, 1, $2)
		ON CONFLICT (what) DO UPDATE SET
			count = CASE WHEN since < $3 THEN 1 ELSE count + 1 END,
			since = CASE WHEN since < $3 THEN $2 ELSE since END`
	sqlForgetOld   = `DELETE FROM sign_in_failure WHERE since < $1`
	sqlForgetEmail = `DELETE FROM sign_in_failure WHERE what = $1`
)

// Failed counts a wrong sign-in against the account and the address.
func (s *Store) Failed(ctx context.Context, tx *store.Tx, c Credentials) error {
	now, old := store.Micros(tx.Now()), store.Micros(tx.Now().Add(-failureWindow))
	if _, err := tx.Exec(ctx, sqlForgetOld, old); err != nil {
		return fmt.Errorf("forget old sign-in failures: %w", err)
	}
	for _, w := range c.counted() {
		if _, err := tx.Exec(ctx, sqlCountFailure, w.what, now, old); err != nil {
			return fmt.Errorf("count sign-in failure: %w", err)
		}
	}
	return nil
}

// Succeeded forgets the account's wrong sign-ins; the address keeps its own.
func (s *Store) Succeeded(ctx context.Context, tx *store.Tx, c Credentials) error {
	_, err := tx.Exec(ctx, sqlForgetEmail, c.counted()[0].what)
	return err
}
