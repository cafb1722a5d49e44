package identity

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// Limits of tokens.
const (
	tokenPrefix      = "cst_"
	tokenLifeMax     = 365 * 24 * time.Hour
	decidingLifeMax  = 24 * time.Hour // a personal token that decides
	tokenNameCharMax = 80
)

// NewToken is what a token is made with.
type NewToken struct {
	Tenant   string
	Owner    id.Person
	Name     string
	Scopes   []string
	Personal bool // acts as its owner, and may decide; otherwise a machine's
	Life     time.Duration
}

// TokenInfo is a token without its secret.
type TokenInfo struct {
	ID       id.Token  `json:"id"`
	Name     string    `json:"name"`
	Shown    string    `json:"shown"`
	Owner    id.Person `json:"owner"`
	Personal bool      `json:"personal"`
	Scopes   []string  `json:"scopes"`
	Created  time.Time `json:"created_at"`
	Expires  time.Time `json:"expires_at"`
	Revoked  time.Time `json:"revoked_at,omitzero"`
}

func (n NewToken) check() error {
	bad := problem.New(problem.Invalid, "invalid", "The token was not made.")
	if c := len([]rune(n.Name)); c == 0 || c > tokenNameCharMax {
		return bad.At("/name", "has %d characters; 1 to %d are allowed", c, tokenNameCharMax)
	}
	if strings.ContainsFunc(n.Name, misleads) {
		return bad.At("/name", "has control characters or marks that turn the direction of writing")
	}
	if len(n.Scopes) == 0 {
		return bad.At("/scopes", "name at least one of %s", strings.Join(Scopes, ", "))
	}
	for _, s := range n.Scopes {
		if !slices.Contains(Scopes, s) {
			return bad.At("/scopes", "%q is not a scope; there are %s", s, strings.Join(Scopes, ", "))
		}
	}
	life := tokenLifeMax
	if slices.Contains(n.Scopes, ScopeDecide) {
		if !n.Personal {
			return bad.At("/scopes", "a machine's token never decides; make a personal token for that")
		}
		if slices.ContainsFunc(n.Scopes, func(s string) bool { return s == "actions:propose" || s == "actions:execute" || s == "runs:write" }) {
			return bad.At("/scopes", "one token never both proposes and decides; make two")
		}
		life = decidingLifeMax
	}
	if n.Life <= 0 || n.Life > life {
		return bad.At("/life", "must be at most %v for these scopes", life)
	}
	return nil
}

const sqlAddToken = `INSERT INTO token (id, tenant, digest, shown, name, owner, personal, scopes, created_at, expires_at, revoked_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL)`

// CreateToken makes a token and returns its secret, which is shown this once
// and stored nowhere. Problem: invalid.
func (s *Store) CreateToken(ctx context.Context, tx *store.Tx, n NewToken) (secret string, info TokenInfo, err error) {
	if err := n.check(); err != nil {
		return "", info, err
	}
	owner, err := s.Person(ctx, tx, n.Tenant, n.Owner)
	if err != nil {
		return "", info, err
	}
	if !owner.Active {
		return "", info, problem.New(problem.Conflict, "person_disabled", "%s is disabled and cannot own a token.", owner.Name)
	}
	secret = tokenPrefix + strings.ToLower(rand.Text()+rand.Text())
	info = TokenInfo{ID: id.NewToken(tx.Now()), Name: n.Name, Shown: secret[:len(tokenPrefix)+6], Owner: n.Owner, Personal: n.Personal,
		Scopes: slices.Clone(n.Scopes), Created: tx.Now(), Expires: tx.Now().Add(n.Life)}
	slices.Sort(info.Scopes)
	info.Scopes = slices.Compact(info.Scopes)
	_, err = tx.Exec(ctx, sqlAddToken, string(info.ID), n.Tenant, digest(secret), info.Shown, n.Name, string(n.Owner), n.Personal,
		strings.Join(info.Scopes, " "), store.Micros(info.Created), store.Micros(info.Expires))
	if err != nil {
		return "", TokenInfo{}, fmt.Errorf("create token: %w", err)
	}
	return secret, info, nil
}

// errToken is the one answer to a token that is unknown, over or revoked.
var errToken = problem.New(problem.Unauthenticated, "invalid_token", "The token is unknown, expired or revoked. Ask its owner for a new one.")

const sqlToken = `SELECT id, tenant, name, owner, personal, scopes, expires_at, revoked_at FROM token WHERE digest = $1`

// Token returns who acts with the secret. Problem: invalid_token.
func (s *Store) Token(ctx context.Context, q store.Querier, secret string, now time.Time) (Principal, error) {
	var t TokenInfo
	var tenant, scopes string
	var expires int64
	var revoked sql.NullInt64
	err := q.QueryRow(ctx, sqlToken, digest(secret)).Scan(&t.ID, &tenant, &t.Name, &t.Owner, &t.Personal, &scopes, &expires, &revoked)
	if errors.Is(err, store.ErrNotFound) {
		return Principal{}, errToken
	}
	if err != nil {
		return Principal{}, fmt.Errorf("read token: %w", err)
	}
	if revoked.Valid || !now.Before(store.FromMicros(expires)) {
		return Principal{}, errToken
	}
	owner, err := s.Person(ctx, q, tenant, t.Owner)
	if err != nil {
		return Principal{}, err
	}
	if !owner.Active {
		return Principal{}, errToken
	}
	p := Principal{Tenant: tenant, Kind: KindMachine, Person: owner.ID, Name: t.Name, Email: owner.Email, Roles: owner.Roles,
		Token: t.ID, Scopes: strings.Fields(scopes), How: "token", Channel: "api"}
	if t.Personal {
		p.Kind, p.Name, p.How = KindPerson, owner.Name, "personal token"
	}
	return p, nil
}

// RevokeToken ends a token; ending it twice is no error.
func (s *Store) RevokeToken(ctx context.Context, tx *store.Tx, tenant string, t id.Token) error {
	n, err := tx.Exec(ctx, `UPDATE token SET revoked_at = $3 WHERE tenant = $1 AND id = $2 AND revoked_at IS NULL`, tenant, string(t), store.Micros(tx.Now()))
	if err != nil || n == 1 {
		return err
	}
	var there int
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM token WHERE tenant = $1 AND id = $2`, tenant, string(t)).Scan(&there); err != nil {
		return err
	}
	if there == 0 {
		return problem.New(problem.NotFound, "not_found", "There is no token %s.", t)
	}
	return nil
}

// Tokens lists the tokens of an owner, or of everybody, newest first.
func (s *Store) Tokens(ctx context.Context, q store.Querier, tenant string, owner id.Person) ([]TokenInfo, error) {
	rows, err := q.Query(ctx, `SELECT id, name, shown, owner, personal, scopes, created_at, expires_at, revoked_at FROM token
		WHERE tenant = $1 AND ($2 = '' OR owner = $2) ORDER BY created_at DESC, id LIMIT 500`, tenant, string(owner))
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	defer rows.Close()
	out := []TokenInfo{}
	for rows.Next() {
		var t TokenInfo
		var scopes string
		var created, expires int64
		var revoked sql.NullInt64
		if err := rows.Scan(&t.ID, &t.Name, &t.Shown, &t.Owner, &t.Personal, &scopes, &created, &expires, &revoked); err != nil {
			return nil, fmt.Errorf("list tokens: %w", err)
		}
		t.Scopes, t.Created, t.Expires = strings.Fields(scopes), store.FromMicros(created), store.FromMicros(expires)
		if revoked.Valid {
			t.Revoked = store.FromMicros(revoked.Int64)
		}
		out = append(out, t)
	}
	return out, rows.Err()
}
