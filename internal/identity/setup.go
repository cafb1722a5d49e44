package identity

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"time"

	"countersign/internal/problem"
	"countersign/internal/store"
)

// setupLife is how long the first start's link works; the next start makes a
// new one.
const setupLife = 24 * time.Hour

// NewSetup makes the one-time token for the first administrator, in place of
// an older one. It returns "" when there are people already.
func (s *Store) NewSetup(ctx context.Context, tx *store.Tx) (string, error) {
	n, err := s.Count(ctx, tx)
	if err != nil || n > 0 {
		return "", err
	}
	token := strings.ToLower(rand.Text() + rand.Text())
	_, err = tx.Exec(ctx, `INSERT INTO setup_token (one, digest, expires_at) VALUES (1, $1, $2)
		ON CONFLICT (one) DO UPDATE SET digest = excluded.digest, expires_at = excluded.expires_at`, digest(token), store.Micros(tx.Now().Add(setupLife)))
	if err != nil {
		return "", fmt.Errorf("make setup token: %w", err)
	}
	return token, nil
}

// errSetup is the one answer to a link that does not work.
var errSetup = problem.New(problem.Forbidden, "setup_closed", "This setup link does not work: it was used, is older than a day, or was never made. Restart the console to get a new one; if people exist already, ask an administrator.")

// CheckSetup reports whether the token still works. Problem: setup_closed.
func (s *Store) CheckSetup(ctx context.Context, q store.Querier, token string, now time.Time) error {
	var want []byte
	var expires int64
	err := q.QueryRow(ctx, `SELECT digest, expires_at FROM setup_token WHERE one = 1`).Scan(&want, &expires)
	if errors.Is(err, store.ErrNotFound) {
		return errSetup
	}
	if err != nil {
		return fmt.Errorf("read setup token: %w", err)
	}
	if subtle.ConstantTimeCompare(want, digest(token)) != 1 || !now.Before(store.FromMicros(expires)) {
		return errSetup
	}
	return nil
}

// CompleteSetup adds the first person, an administrator, and uses the token
// up. Problems: setup_closed, email_taken.
func (s *Store) CompleteSetup(ctx context.Context, tx *store.Tx, token string, first Prepared) (Person, error) {
	if err := s.CheckSetup(ctx, tx, token, tx.Now()); err != nil {
		return Person{}, err
	}
	if n, err := s.Count(ctx, tx); err != nil || n > 0 {
		return Person{}, errors.Join(err, errSetup)
	}
	if _, err := tx.Exec(ctx, `DELETE FROM setup_token WHERE one = 1`); err != nil {
		return Person{}, fmt.Errorf("use setup token: %w", err)
	}
	first.person.Roles = []string{"admin", "approver", "operator"}
	return s.Add(ctx, tx, first)
}
