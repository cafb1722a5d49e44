package vault

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/sealed"
	"countersign/internal/store"
)

// Box holds the sensitive values of one run. It belongs to one goroutine.
type Box struct {
	v      *Vault
	tenant string
	run    id.Run
	key    []byte // nil: the run has none yet
	salt   []byte
	made   bool              // the key is new: Save writes it
	fresh  map[string][]byte // by commitment: canonical values that Save writes
}

// Box returns the box of a run, which may be empty.
func (v *Vault) Box(ctx context.Context, q store.Querier, tenant string, run id.Run) (*Box, error) {
	b := &Box{v: v, tenant: tenant, run: run, fresh: map[string][]byte{}}
	var version int
	var wrapped []byte
	err := q.QueryRow(ctx, "SELECT version, wrapped FROM data_key WHERE tenant = $1 AND run = $2", tenant, string(run)).Scan(&version, &wrapped)
	if errors.Is(err, sql.ErrNoRows) {
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the run's key: %w", err)
	}
	above, err := v.tenantKeyOf(ctx, q, tenant, version)
	if err != nil {
		return nil, err
	}
	both, err := unshut(above, wrapped, place(tenant, string(run)))
	if err != nil || len(both) != 2*keyBytes {
		return nil, fmt.Errorf("open the key of run %s: %w", run, ErrAltered)
	}
	b.key, b.salt = both[:keyBytes], both[keyBytes:]
	return b, nil
}

// NewBox returns the box of a run that is being made.
func (v *Vault) NewBox(tenant string, run id.Run) *Box {
	return &Box{v: v, tenant: tenant, run: run, fresh: map[string][]byte{}}
}

// Seal returns the document, canonical, with the values that the pointers name
// sealed. What is sealed already stays as it is, and so does a document that
// has none of them. Save makes the values durable.
func (b *Box) Seal(doc json.RawMessage, pointers []string) (json.RawMessage, error) {
	if len(pointers) == 0 || len(doc) == 0 {
		return doc, nil
	}
	v, err := canon.Value(doc)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	changed := false
	for _, p := range concrete(v, pointers) {
		x, ok := canon.Get(v, p)
		if _, done := sealed.Of(x); !ok || done || x == nil {
			continue
		}
		c, err := b.commit(x)
		if err != nil {
			return nil, err
		}
		if v, err = canon.Set(v, p, c.Leaf()); err != nil {
			return nil, fmt.Errorf("seal: %w", err)
		}
		changed = true
	}
	if !changed {
		return doc, nil
	}
	return canon.Marshal(v)
}

// concrete returns the pointers with every "-" expanded, the ones further out
// first.
func concrete(v any, pointers []string) (out []string) {
	for _, p := range pointers {
		out = append(out, canon.Expand(v, p)...)
	}
	slices.SortStableFunc(out, func(a, b string) int { return len(a) - len(b) })
	return out
}

// commit takes a value in, which has no sealed values inside.
func (b *Box) commit(x any) (sealed.Commitment, error) {
	value, err := canon.Marshal(x)
	if err != nil {
		return "", fmt.Errorf("seal: %w", err)
	}
	if b.key == nil {
		b.key, b.salt, b.made = random(keyBytes), random(keyBytes), true
	}
	c := b.commitment(value)
	b.fresh[string(c)] = value
	return c, nil
}

func (b *Box) commitment(value []byte) sealed.Commitment {
	return sealed.Commitment(sealed.Prefix + hex.EncodeToString(mac(b.salt, value)))
}

// ErrGone says that a sensitive value is not there: it was erased, or was
// never this run's.
var ErrGone error = problem.New(problem.Conflict, "sensitive_gone", "A sensitive value that this needs is not there any more: it was erased, or belongs to another run.")

// Value gives the value of a commitment.
func (b *Box) Value(ctx context.Context, q store.Querier, c sealed.Commitment) (any, error) {
	if value, ok := b.fresh[string(c)]; ok {
		return canon.Value(value)
	}
	if b.key == nil {
		return nil, ErrGone
	}
	var ciphertext []byte
	err := q.QueryRow(ctx, "SELECT ciphertext FROM sealed_value WHERE tenant = $1 AND run = $2 AND commitment = $3",
		b.tenant, string(b.run), string(c)).Scan(&ciphertext)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("read a sensitive value: %w", err)
	}
	value, err := unshut(b.key, ciphertext, b.place(string(c)))
	if err != nil || b.commitment(value) != c {
		return nil, fmt.Errorf("open a sensitive value of run %s: %w", b.run, ErrAltered)
	}
	return canon.Value(value)
}

func (b *Box) place(commitment string) string { return place(b.tenant, string(b.run), commitment) }

// Open returns the document with every sealed value in place, also inside of
// texts. It is for what judges or compares; never store it.
func (b *Box) Open(ctx context.Context, q store.Querier, doc json.RawMessage) (json.RawMessage, error) {
	if !sealed.In(doc) {
		return doc, nil
	}
	v, err := canon.Value(doc)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if v, err = sealed.ReplaceAll(v, b.value(ctx, q)); err != nil {
		return nil, err
	}
	return canon.Marshal(v)
}

// OpenToSeal returns the document with the sealed values in place that Seal
// takes in again, and where they stood: those that stand alone, and those inside
// of texts at the pointers. It is for what validates; never store it.
func (b *Box) OpenToSeal(ctx context.Context, q store.Querier, doc json.RawMessage, pointers []string) (json.RawMessage, []string, error) {
	if !sealed.In(doc) {
		return doc, nil, nil
	}
	v, err := canon.Value(doc)
	if err != nil {
		return nil, nil, fmt.Errorf("open: %w", err)
	}
	var stood []string
	for _, p := range sealed.Places(v) {
		stood = append(stood, p.Pointer)
	}
	if v, err = sealed.Replace(v, b.value(ctx, q)); err != nil {
		return nil, nil, err
	}
	for _, p := range concrete(v, pointers) {
		x, ok := canon.Get(v, p)
		if !ok {
			continue
		}
		if x, err = sealed.ReplaceAll(x, b.value(ctx, q)); err != nil {
			return nil, nil, err
		}
		if v, err = canon.Set(v, p, x); err != nil {
			return nil, nil, fmt.Errorf("open: %w", err)
		}
	}
	out, err := canon.Marshal(v)
	return out, stood, err
}

func (b *Box) value(ctx context.Context, q store.Querier) func(sealed.Commitment) (any, error) {
	return func(c sealed.Commitment) (any, error) { return b.Value(ctx, q, c) }
}

// Fresh reports whether there is something to save.
func (b *Box) Fresh() bool { return b != nil && len(b.fresh) > 0 }

// Save writes what was sealed since the last time, in the transaction that
// writes the commitments. It may be called again after a rollback. A key that
// another transaction gave the run meanwhile is a store.ErrConflict.
func (b *Box) Save(ctx context.Context, tx *store.Tx) error {
	if !b.Fresh() {
		return nil
	}
	if b.made {
		if err := b.saveKey(ctx, tx); err != nil {
			return err
		}
	}
	for c, value := range b.fresh {
		ciphertext, err := shut(b.key, value, b.place(c))
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO sealed_value (tenant, run, commitment, ciphertext, created_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
			b.tenant, string(b.run), c, ciphertext, store.Micros(tx.Now()))
		if err != nil {
			return fmt.Errorf("write a sensitive value: %w", err)
		}
	}
	return nil
}

func (b *Box) saveKey(ctx context.Context, tx *store.Tx) error {
	version, above, err := b.v.tenantKey(ctx, tx, b.tenant)
	if err == nil && version == 0 {
		version, above, err = b.v.makeTenantKey(ctx, tx, b.tenant)
	}
	if err != nil {
		return fmt.Errorf("make the run's key: %w", err)
	}
	wrapped, err := shut(above, append(append([]byte{}, b.key...), b.salt...), place(b.tenant, string(b.run)))
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO data_key (tenant, run, version, wrapped, created_at) VALUES ($1, $2, $3, $4, $5)",
		b.tenant, string(b.run), version, wrapped, store.Micros(tx.Now()))
	if store.IsUnique(err) {
		return store.ErrConflict
	}
	return err
}

// Saved forgets what is durable: call it once Save's transaction is.
func (b *Box) Saved() {
	if b != nil {
		b.made = false
		clear(b.fresh)
	}
}
