package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// How long a session lives: without use, and at all.
const (
	sessionIdle   = 12 * time.Hour
	sessionMax    = 7 * 24 * time.Hour
	sessionTouch  = time.Minute // the last use is written at most this often
	agentCharsMax = 200
	sessionsMax   = 50 // of one person; beyond it the oldest end
)

// Session is one signed-in browser.
type Session struct {
	ID      id.Session `json:"id"`
	Person  id.Person  `json:"person"`
	Created time.Time  `json:"created_at"`
	Seen    time.Time  `json:"seen_at"`
	Expires time.Time  `json:"expires_at"`
	Address string     `json:"address"`
	Agent   string     `json:"agent"`
}

func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

const (
	sqlForgetOver   = `DELETE FROM session WHERE expires_at <= $1 OR seen_at <= $2`
	sqlForgetOldest = `DELETE FROM session WHERE person = $1 AND id NOT IN (SELECT id FROM session WHERE person = $1 ORDER BY created_at DESC, id DESC LIMIT $2)`
)

const sqlBegin = `INSERT INTO session (id, digest, person, tenant, created_at, seen_at, expires_at, address, agent) VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8)`

// Begin starts a session and returns its token, which is stored nowhere. Each
// sign-in gets a new one, so that a token planted before is worthless. It
// also forgets sessions that are over, of anybody.
func (s *Store) Begin(ctx context.Context, tx *store.Tx, tenant string, p id.Person, address, agent string) (token string, err error) {
	token = rand.Text() + rand.Text() // 260 bits
	if r := []rune(agent); len(r) > agentCharsMax {
		agent = string(r[:agentCharsMax])
	}
	agent = strings.ToValidUTF8(agent, "\uFFFD")
	now := tx.Now()
	if _, err := tx.Exec(ctx, sqlForgetOver, store.Micros(now), store.Micros(now.Add(-sessionIdle))); err != nil {
		return "", fmt.Errorf("forget old sessions: %w", err)
	}
	if _, err := tx.Exec(ctx, sqlForgetOldest, string(p), sessionsMax-1); err != nil {
		return "", fmt.Errorf("end the oldest sessions: %w", err)
	}
	_, err = tx.Exec(ctx, sqlBegin, string(id.NewSession(now)), digest(token), string(p), tenant, store.Micros(now), store.Micros(now.Add(sessionMax)), address, agent)
	if err != nil {
		return "", fmt.Errorf("begin session: %w", err)
	}
	return token, nil
}

// errSignedOut is the answer to a session that is over, whatever ended it.
var errSignedOut = problem.New(problem.Unauthenticated, "signed_out", "You are signed out. Sign in again; you come back to this page.")

const sqlSession = `SELECT id, person, tenant, seen_at, expires_at FROM session WHERE digest = $1`

// Session returns who holds the token, with the roles of this moment, and
// whether the session's last use should be written (Touch). Problem:
// signed_out.
func (s *Store) Session(ctx context.Context, q store.Querier, token string, now time.Time) (p Principal, touch bool, err error) {
	var session id.Session
	var person id.Person
	var tenant string
	var seen, expires int64
	err = q.QueryRow(ctx, sqlSession, digest(token)).Scan(&session, &person, &tenant, &seen, &expires)
	if errors.Is(err, store.ErrNotFound) {
		return p, false, errSignedOut
	}
	if err != nil {
		return p, false, fmt.Errorf("read session: %w", err)
	}
	if !now.Before(store.FromMicros(expires)) || !now.Before(store.FromMicros(seen).Add(sessionIdle)) {
		return p, false, errSignedOut
	}
	who, err := s.Person(ctx, q, tenant, person)
	if err != nil {
		return p, false, err
	}
	if !who.Active {
		return p, false, errSignedOut
	}
	p = Principal{Tenant: tenant, Kind: KindPerson, Person: who.ID, Name: who.Name, Email: who.Email, Roles: who.Roles, Session: session, How: "password", Channel: "browser"}
	return p, now.Sub(store.FromMicros(seen)) >= sessionTouch, nil
}

// Touch writes that the session was used.
func (s *Store) Touch(ctx context.Context, tx *store.Tx, session id.Session) error {
	_, err := tx.Exec(ctx, `UPDATE session SET seen_at = $2 WHERE id = $1 AND seen_at < $2`, string(session), store.Micros(tx.Now()))
	return err
}

// End ends one session of a person; ending it twice is no error.
func (s *Store) End(ctx context.Context, tx *store.Tx, p id.Person, session id.Session) error {
	_, err := tx.Exec(ctx, `DELETE FROM session WHERE id = $1 AND person = $2`, string(session), string(p))
	return err
}

// Sessions lists the sessions of a person, newest first.
func (s *Store) Sessions(ctx context.Context, q store.Querier, p id.Person) ([]Session, error) {
	rows, err := q.Query(ctx, `SELECT id, person, created_at, seen_at, expires_at, address, agent FROM session WHERE person = $1 ORDER BY created_at DESC, id LIMIT 200`, string(p))
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	defer rows.Close()
	out := []Session{}
	for rows.Next() {
		var v Session
		var created, seen, expires int64
		if err := rows.Scan(&v.ID, &v.Person, &created, &seen, &expires, &v.Address, &v.Agent); err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		v.Created, v.Seen, v.Expires = store.FromMicros(created), store.FromMicros(seen), store.FromMicros(expires)
		out = append(out, v)
	}
	return out, rows.Err()
}
