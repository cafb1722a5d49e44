package enginetest

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"time"

	"countersign/internal/canon"
	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations are the tables of the gate and the recorder.
var Migrations = store.Line{Name: "enginetest", FS: migrations, Dir: "migrations"}

// Lines are the engine's tables and those of this package.
func Lines() []store.Line { return []store.Line{engine.Migrations, Migrations} }

// Gate keeps its requests in a table, so that they survive a crash, and rules
// as Policy says. Its zero value asks about everything.
type Gate struct {
	Policy        func(p engine.Proposal) string // Allowed, Pending or Denied; nil: Pending
	Verdict       func(r id.Approval) (verdict, why string)
	DecideWithin  time.Duration // 0: no end
	ExecuteWithin time.Duration // 0: no end
}

var _ engine.Gate = (*Gate)(nil)
var _ engine.Expirer = (*Gate)(nil)

type request struct {
	engine.Ruling
	kind    string
	request json.RawMessage
	key     string
	pin     string
	settled string
}

// Propose keeps the request with the policy's ruling.
func (g *Gate) Propose(ctx context.Context, tx *store.Tx, p engine.Proposal) (engine.Ruling, error) {
	r := request{kind: p.Kind, request: p.Request, key: p.Key, pin: pinOf(engine.Facts{Precondition: p.Precondition})}
	r.Status, r.Request, r.Revision, r.Params = engine.Pending, id.NewApproval(tx.Now()), 1, p.Params
	if g.Policy != nil {
		r.Status = g.Policy(p)
	}
	if g.DecideWithin > 0 {
		r.DecideBy = tx.Now().Add(g.DecideWithin)
	}
	if g.ExecuteWithin > 0 {
		r.ExecuteBy = tx.Now().Add(g.ExecuteWithin)
	}
	if p.Kind == engine.ProposeDocument {
		r.request, r.Params = p.Document, p.Document
	}
	digest, err := r.subject()
	if err != nil {
		return engine.Ruling{}, err
	}
	r.Digest = digest
	err = tx.ExecOne(ctx, `INSERT INTO fake_request (tenant, id, revision, status, kind, run, path, pass, params, request, key, pin, digest,
		decide_by, execute_by, comment, author, settled) VALUES ($1,$2,1,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,'','','')`, p.Tenant, string(r.Request),
		r.Status, r.kind, string(p.Run), p.Path, p.Pass, string(r.Params), string(r.request), r.key, r.pin, r.Digest, micros(r.DecideBy), micros(r.ExecuteBy))
	return r.Ruling, err
}

// subject is the digest of what is approved.
func (r request) subject() (string, error) {
	return canon.DigestOf(map[string]any{"params": r.Params, "request": r.request, "key": r.key, "pin": r.pin, "revision": r.Revision})
}

func pinOf(f engine.Facts) string {
	if f.Precondition == nil {
		return ""
	}
	return string(f.Precondition.Pin)
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return store.Micros(t)
}

func read(ctx context.Context, q store.Querier, apr id.Approval) (request, error) {
	var r request
	var params, frozen string
	var decide, execute int64
	err := q.QueryRow(ctx, `SELECT id, revision, status, kind, params, request, key, pin, digest, decide_by, execute_by, comment, author, settled
		FROM fake_request WHERE id = $1`, string(apr)).Scan(&r.Request, &r.Revision, &r.Status, &r.kind, &params, &frozen, &r.key, &r.pin, &r.Digest,
		&decide, &execute, &r.Comment, &r.By, &r.settled)
	if err != nil {
		return r, fmt.Errorf("fake request %s: %w", apr, err)
	}
	r.Params, r.request = json.RawMessage(params), json.RawMessage(frozen)
	if decide != 0 {
		r.DecideBy = store.FromMicros(decide)
	}
	if execute != 0 {
		r.ExecuteBy = store.FromMicros(execute)
	}
	return r, nil
}

// Ruling reads the request.
func (g *Gate) Ruling(ctx context.Context, q store.Querier, apr id.Approval) (engine.Ruling, error) {
	r, err := read(ctx, q, apr)
	return r.Ruling, err
}

// Admit recomputes the digest and compares the pin.
func (g *Gate) Admit(ctx context.Context, tx *store.Tx, apr id.Approval, seen engine.Facts) (engine.Admission, error) {
	r, err := read(ctx, tx, apr)
	if err != nil {
		return engine.Admission{}, err
	}
	adm := engine.Admission{Verdict: engine.VerdictGo, Digest: r.Digest, Params: r.Params, Request: r.request, Key: r.key, By: r.By, Comment: r.Comment}
	if g.Verdict != nil {
		if v, why := g.Verdict(apr); v != "" {
			adm.Verdict, adm.Why = v, why
		}
	}
	digest, err := r.subject()
	switch {
	case err != nil:
		return adm, err
	case adm.Verdict == engine.VerdictRenewed:
		return adm, g.revise(ctx, tx, r, pinOf(seen))
	case adm.Verdict != engine.VerdictGo:
	case r.Status != engine.Approved && r.Status != engine.Allowed:
		adm.Verdict, adm.Why = engine.VerdictBlocked, "it is "+r.Status
	case digest != r.Digest:
		adm.Verdict, adm.Why = engine.VerdictBlocked, "the subject is not the one that was approved"
	case !r.ExecuteBy.IsZero() && !tx.Now().Before(r.ExecuteBy):
		adm.Verdict, adm.Why = engine.VerdictExpired, "execute-by has passed"
		return adm, g.set(ctx, tx, apr, engine.Expired, "", "")
	case r.kind == engine.ProposeAction && !seen.Resend && pinOf(seen) != r.pin:
		adm.Verdict, adm.Why = engine.VerdictRenewed, "the pin changed"
		return adm, g.revise(ctx, tx, r, pinOf(seen))
	}
	return adm, nil
}

// revise opens the next revision.
func (g *Gate) revise(ctx context.Context, tx *store.Tx, r request, pin string) error {
	r.pin = pin
	r.Revision++
	digest, err := r.subject()
	if err != nil {
		return err
	}
	return tx.ExecOne(ctx, "UPDATE fake_request SET revision = revision + 1, status = 'pending', pin = $1, digest = $2 WHERE id = $3", r.pin, digest, string(r.Request))
}

// Renew opens the next revision with what was seen.
func (g *Gate) Renew(ctx context.Context, tx *store.Tx, apr id.Approval, seen engine.Facts, why string) (engine.Ruling, error) {
	r, err := read(ctx, tx, apr)
	if err != nil {
		return engine.Ruling{}, err
	}
	if err := g.revise(ctx, tx, r, pinOf(seen)); err != nil {
		return engine.Ruling{}, err
	}
	r, err = read(ctx, tx, apr)
	return r.Ruling, err
}

// Withdraw closes an open request.
func (g *Gate) Withdraw(ctx context.Context, tx *store.Tx, apr id.Approval, why string, by engine.Actor) error {
	_, err := tx.Exec(ctx, "UPDATE fake_request SET status = 'withdrawn', comment = $1 WHERE id = $2 AND status IN ('pending','approved','allowed')", why, string(apr))
	return err
}

// Settled keeps how the effect ended.
func (g *Gate) Settled(ctx context.Context, tx *store.Tx, apr id.Approval, outcome string) error {
	return tx.ExecOne(ctx, "UPDATE fake_request SET settled = $1 WHERE id = $2", outcome, string(apr))
}

// Expire closes a request whose decide-by has passed.
func (g *Gate) Expire(ctx context.Context, tx *store.Tx, apr id.Approval) (engine.Ruling, error) {
	r, err := read(ctx, tx, apr)
	if err != nil || r.Status != engine.Pending || tx.Now().Before(r.DecideBy) {
		return r.Ruling, err
	}
	if err := g.set(ctx, tx, apr, engine.Expired, "", ""); err != nil {
		return engine.Ruling{}, err
	}
	r.Status = engine.Expired
	return r.Ruling, nil
}

func (g *Gate) set(ctx context.Context, tx *store.Tx, apr id.Approval, status, by, comment string) error {
	return tx.ExecOne(ctx, "UPDATE fake_request SET status = $1, author = $2, comment = $3 WHERE id = $4", status, by, comment, string(apr))
}

// Settlement is how the gate was told the effect of a request ended.
func Settlement(ctx context.Context, q store.Querier, apr id.Approval) (string, error) {
	r, err := read(ctx, q, apr)
	return r.settled, err
}

// Edit gives every request other bytes and another key, with a digest that
// fits, as an edit and its approval would.
func Edit(ctx context.Context, db *store.DB, frozen, key string) error {
	return db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		var apr id.Approval
		if err := tx.QueryRow(ctx, "SELECT id FROM fake_request").Scan(&apr); err != nil {
			return err
		}
		r, err := read(ctx, tx, apr)
		if err != nil {
			return err
		}
		r.request, r.key = json.RawMessage(frozen), key
		digest, err := r.subject()
		if err != nil {
			return err
		}
		return tx.ExecOne(ctx, "UPDATE fake_request SET request = $1, key = $2, digest = $3 WHERE id = $4", frozen, key, digest, string(apr))
	})
}
