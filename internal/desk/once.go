package desk

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"

	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
)

//go:embed migrations
var migrations embed.FS

// Migrations is the desk's own line of the schema.
var Migrations = store.Line{Name: "desk", FS: migrations, Dir: "migrations", Guarded: []string{"statement", "drill"}}

// Once makes a creating call repeatable: the same key, caller, route and body
// give the object that was created the first time. An empty key does nothing.
type Once struct {
	Key   string
	Route string
	Body  []byte
}

const sqlOnce = `SELECT body_digest, object FROM once WHERE tenant = $1 AND caller = $2 AND route = $3 AND key = $4`

// made returns the object created earlier under the key, or "". The same key
// with another body is a problem of code idempotency_key_reused.
func (d *Desk) made(ctx context.Context, q store.Querier, p identity.Principal, o Once) (string, error) {
	if o.Key == "" {
		return "", nil
	}
	if len(o.Key) > keyCharsMax {
		return "", problem.New(problem.Invalid, "invalid", "The idempotency key is too long.").At("Idempotency-Key", "has %d characters; at most %d", len(o.Key), keyCharsMax)
	}
	var digest, object string
	err := q.QueryRow(ctx, sqlOnce, Tenant, o.caller(p), o.Route, o.Key).Scan(&digest, &object)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look up idempotency key: %w", err)
	}
	if !d.vault.Same(Tenant, o.Body, digest) {
		return "", problem.New(problem.Invalid, "idempotency_key_reused",
			"This Idempotency-Key was used for another request. Nothing was done; send a new key for a new request.")
	}
	return object, nil
}

const sqlKeepOnce = `INSERT INTO once (tenant, caller, route, key, body_digest, object, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`

// keep remembers the object in the transaction that creates it.
func (d *Desk) keep(ctx context.Context, tx *store.Tx, p identity.Principal, o Once, object string) error {
	if o.Key == "" {
		return nil
	}
	_, err := tx.Exec(ctx, sqlKeepOnce, Tenant, o.caller(p), o.Route, o.Key, d.vault.Equal(Tenant, o.Body), object, store.Micros(tx.Now()))
	if err != nil {
		return fmt.Errorf("keep idempotency key: %w", err)
	}
	return nil
}

// caller is whose keys they are: a token's own, else a person's.
func (o Once) caller(p identity.Principal) string {
	if p.Token != "" {
		return string(p.Token)
	}
	return string(p.Person)
}
