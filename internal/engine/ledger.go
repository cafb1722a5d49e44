package engine

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
	"countersign/internal/tools"
)

// errNoEffect is what another tenant's effect looks like, too.
var errNoEffect = problem.New(problem.NotFound, "not_found", "There is no such effect.")

// action is a proposed call as it was when it was proposed.
type action struct {
	ID         id.Action
	Tool       string
	ToolDigest string
	Approval   id.Approval
	Params     json.RawMessage
	Base       string
}

func putAction(ctx context.Context, tx *store.Tx, r Run, path string, pass int, a action) error {
	err := tx.ExecOne(ctx, `INSERT INTO action (tenant, id, run, path, pass, tool, tool_digest, approval, params, base, created_at)
		VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11)`, r.Tenant, string(a.ID), string(r.ID), path, pass, a.Tool, a.ToolDigest,
		string(a.Approval), string(a.Params), a.Base, store.Micros(tx.Now()))
	if err != nil {
		return fmt.Errorf("insert action: %w", err)
	}
	return nil
}

func readAction(ctx context.Context, q store.Querier, tenant string, action_ id.Action) (action, error) {
	var a action
	var params string
	err := q.QueryRow(ctx, "SELECT id, tool, tool_digest, approval, params, base FROM action WHERE tenant = $1 AND id = $2", tenant, string(action_)).
		Scan(&a.ID, &a.Tool, &a.ToolDigest, &a.Approval, &params, &a.Base)
	if err != nil {
		return action{}, fmt.Errorf("read action %s: %w", action_, err)
	}
	a.Params = json.RawMessage(params)
	return a, nil
}

const effectColumns = `tenant, id, action, run, path, pass, tool, tool_version, tool_digest, key, base, generation, status, attempts,
	fence, approval, digest, request_digest, request, params, pin, first_sent_at, sent_at, key_expires_at, external_ref, receipt,
	message, resolved_at, resolved_by, evidence, reconcile_at, reconcile_count, created_at, updated_at`

func scanEffect(row scanner) (Effect, error) {
	var e Effect
	var request, params, pin, receipt sql.NullString
	var first, sent, expires, resolved, reconcile sql.NullInt64
	var created, updated int64
	err := row.Scan(&e.Tenant, &e.ID, &e.Action, &e.Run, &e.Path, &e.Pass, &e.Tool, &e.ToolVersion, &e.ToolDigest, &e.Key, &e.base,
		&e.Generation, &e.Status, &e.Attempts, &e.fence, &e.Approval, &e.Digest, &e.RequestDigest, &request, &params, &pin,
		&first, &sent, &expires, &e.ExternalRef, &receipt, &e.Message, &resolved, &e.ResolvedBy, &e.Evidence, &reconcile,
		&e.ReconcileCount, &created, &updated)
	if err != nil {
		return Effect{}, err
	}
	e.request, e.params, e.pin, e.Receipt = raw(request), raw(params), raw(pin), raw(receipt)
	e.firstSent, e.SentAt, e.KeyExpiresAt = fromNull(first), fromNull(sent), fromNull(expires)
	e.ResolvedAt, e.ReconcileAt = fromNull(resolved), fromNull(reconcile)
	e.CreatedAt, e.UpdatedAt = fromMicros(created), fromMicros(updated)
	return e, nil
}

// lastEffect reads the newest generation among the effects the condition names.
func lastEffect(ctx context.Context, q store.Querier, where string, args ...any) (Effect, error) {
	e, err := scanEffect(q.QueryRow(ctx, "SELECT "+effectColumns+" FROM effect WHERE "+where+" ORDER BY generation DESC LIMIT 1", args...))
	if errors.Is(err, store.ErrNotFound) {
		return Effect{}, errNoEffect
	}
	return e, err
}

// effectsWhere reads the effects the condition names, oldest first.
func effectsWhere(ctx context.Context, q store.Querier, where string, args ...any) ([]Effect, error) {
	rows, err := q.Query(ctx, "SELECT "+effectColumns+" FROM effect WHERE "+where+" ORDER BY id", args...)
	if err != nil {
		return nil, fmt.Errorf("read effects: %w", err)
	}
	defer rows.Close()
	all := []Effect{}
	for rows.Next() {
		e, err := scanEffect(rows)
		if err != nil {
			return nil, fmt.Errorf("read effect: %w", err)
		}
		all = append(all, e)
	}
	return all, rows.Err()
}

// prepare writes the ledger row of an action that nobody has sent yet.
func (e *Engine) prepare(ctx context.Context, tx *store.Tx, r Run, eff *Effect, tool *tools.Tool) error {
	now := tx.Now()
	eff.ID, eff.Tenant, eff.Run, eff.Status, eff.CreatedAt, eff.UpdatedAt = id.NewEffect(now), r.Tenant, r.ID, Prepared, now, now
	eff.Tool, eff.ToolVersion, eff.ToolDigest = tool.Name, tool.Version, tool.Digest
	err := tx.ExecOne(ctx, `INSERT INTO effect (tenant, id, action, run, path, pass, tool, tool_version, tool_digest, key, base, generation,
		status, attempts, fence, approval, digest, request_digest, external_ref, message, resolved_by, evidence, reconcile_count,
		created_at, updated_at) VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,'prepared',0,0,$13,'','','','','','',0,$14,$14)`,
		eff.Tenant, string(eff.ID), string(eff.Action), string(eff.Run), eff.Path, eff.Pass, eff.Tool, eff.ToolVersion, eff.ToolDigest,
		eff.Key, eff.base, eff.Generation, string(eff.Approval), store.Micros(now))
	if err != nil {
		return fmt.Errorf("prepare effect: %w", err)
	}
	e.effectMoved(tx, eff)
	return e.ledgered(ctx, tx, r, *eff, engineActor, map[string]any{"key": eff.Key, "tool": eff.Tool, "generation": eff.Generation})
}

const sqlSent = `UPDATE effect SET status = 'sent', attempts = attempts + 1, fence = $1, digest = $2, request_digest = $3, request = $4,
	params = $5, pin = $6, sent_at = $7, first_sent_at = COALESCE(first_sent_at, $7), key_expires_at = COALESCE(key_expires_at, $8),
	reconcile_at = NULL, reconcile_count = 0, updated_at = $7
	WHERE tenant = $9 AND id = $10 AND status = $11 AND attempts = $12`

// markSent moves the row to `sent`: from here on the outside may have changed.
func (e *Engine) markSent(ctx context.Context, tx *store.Tx, r Run, eff *Effect, adm Admission, ttl time.Duration, keyed bool) error {
	now := tx.Now()
	var expires any
	if keyed {
		expires = store.Micros(now.Add(ttl))
	}
	request := digestOf(adm.Request)
	err := tx.ExecOne(ctx, sqlSent, r.Lease.Fence, adm.Digest, request, string(adm.Request), text(adm.Params), text(eff.pin),
		store.Micros(now), expires, eff.Tenant, string(eff.ID), eff.Status, eff.Attempts)
	if err != nil {
		return fmt.Errorf("mark effect %s as sent: %w", eff.ID, err)
	}
	if keyed && eff.KeyExpiresAt.IsZero() {
		eff.KeyExpiresAt = now.Add(ttl)
	}
	if eff.firstSent.IsZero() {
		eff.firstSent = now
	}
	eff.Status, eff.Attempts, eff.fence, eff.Digest, eff.RequestDigest = Sent, eff.Attempts+1, r.Lease.Fence, adm.Digest, request
	eff.request, eff.params, eff.SentAt, eff.ReconcileCount = adm.Request, adm.Params, now, 0
	e.effectMoved(tx, eff)
	return e.ledgered(ctx, tx, r, *eff, engineActor, map[string]any{"key": eff.Key, "attempt": eff.Attempts, "request": request,
		"fence": r.Lease.Fence, "run_version": r.Version, "checkpoint": r.head, "decision": adm.AuditEntry})
}

// resolution is the end of a try, or what was found out about one later.
type resolution struct {
	status    string
	ref       string
	receipt   json.RawMessage
	message   string
	by        Actor
	evidence  string
	reconcile time.Time // unknown only: when to ask again
	count     int       // unknown only: questions asked so far
}

const sqlResolve = `UPDATE effect SET status = $1, external_ref = CASE WHEN $2 = '' THEN external_ref ELSE $2 END,
	receipt = COALESCE($3, receipt), message = $4, resolved_at = $5, resolved_by = $6,
	evidence = CASE WHEN $7 = '' THEN evidence ELSE $7 END, reconcile_at = $8, reconcile_count = $9, updated_at = $10
	WHERE tenant = $11 AND id = $12 AND status = $13 AND attempts = $14 AND fence = $15`

// errLate means that the ledger row has moved on: somebody took over.
var errLate = errors.New("engine: the effect was settled by somebody else")

// settle moves the row along one edge, if it is still where eff says.
func (e *Engine) settle(ctx context.Context, tx *store.Tx, r Run, eff *Effect, res resolution) error {
	now := tx.Now()
	resolved, resolver := any(store.Micros(now)), actorName(res.by)
	if res.status == Unknown {
		resolved, resolver = nil, ""
	}
	n, err := tx.Exec(ctx, sqlResolve, res.status, res.ref, text(res.receipt), res.message, resolved, resolver, res.evidence,
		nullable(res.reconcile), res.count, store.Micros(now), eff.Tenant, string(eff.ID), eff.Status, eff.Attempts, eff.fence)
	if err != nil {
		return fmt.Errorf("settle effect %s: %w", eff.ID, err)
	}
	if n == 0 {
		return errLate
	}
	was := eff.Status
	eff.Status, eff.Message, eff.ReconcileAt, eff.ReconcileCount, eff.UpdatedAt = res.status, res.message, res.reconcile, res.count, now
	if len(res.receipt) > 0 {
		eff.Receipt = res.receipt
	}
	if res.ref != "" {
		eff.ExternalRef = res.ref
	}
	if res.status != Unknown && res.status != NotDone {
		done := *eff
		tx.AfterCommit(func() { e.forget(r, done) })
	}
	if was != res.status {
		e.effectMoved(tx, eff)
	}
	if eff.Approval != "" && was != res.status {
		if err := e.o.Gate.Settled(ctx, tx, eff.Approval, res.status); err != nil {
			return fmt.Errorf("tell request %s how it ended: %w", eff.Approval, err)
		}
	}
	return e.ledgered(ctx, tx, r, *eff, res.by, map[string]any{"key": eff.Key, "attempt": eff.Attempts, "from": was,
		"message": res.message, "external_ref": eff.ExternalRef, "receipt": eff.Receipt, "evidence": res.evidence})
}

// forget lets the world throw away what it kept for an effect that is settled.
func (e *Engine) forget(r Run, eff Effect) {
	if w, ok := e.o.World.(interface{ Forget(effect string) error }); ok {
		if err := w.Forget(string(eff.ID)); err != nil {
			e.effectLog(r, eff).Warn("forget effect", "error", err)
		}
	}
}

// ledgered records a transition and tells the pages.
func (e *Engine) ledgered(ctx context.Context, tx *store.Tx, r Run, eff Effect, by Actor, payload map[string]any) error {
	tx.AfterCommit(func() { e.notify("effects", string(eff.ID)) })
	return e.record(ctx, tx, Record{Tenant: eff.Tenant, Actor: by, Action: "effect." + eff.Status, Subject: string(eff.ID), Run: r.ID,
		Digest: eff.Digest, Outcome: eff.Status, Payload: payload})
}

// addEvidence keeps what was learned about an effect, whatever its status.
func (e *Engine) addEvidence(ctx context.Context, tx *store.Tx, eff Effect, kind string, by Actor, body any) error {
	_, err := tx.Exec(ctx, `INSERT INTO evidence (tenant, effect, seq, kind, author, body, created_at)
		SELECT $1, $2, 1 + COALESCE(MAX(seq), 0), $3, $4, $5, $6 FROM evidence WHERE tenant = $1 AND effect = $2`,
		eff.Tenant, string(eff.ID), kind, actorName(by), encode(body), store.Micros(tx.Now()))
	if err != nil {
		return fmt.Errorf("keep evidence: %w", err)
	}
	tx.AfterCommit(func() { e.notify("effects", string(eff.ID)) })
	return e.record(ctx, tx, Record{Tenant: eff.Tenant, Actor: by, Action: "effect." + kind, Subject: string(eff.ID), Run: eff.Run,
		Digest: eff.Digest, Outcome: eff.Status, Payload: body})
}

func readEvidence(ctx context.Context, q store.Querier, eff Effect) ([]Evidence, error) {
	rows, err := q.Query(ctx, "SELECT kind, author, body, created_at FROM evidence WHERE tenant = $1 AND effect = $2 ORDER BY seq", eff.Tenant, string(eff.ID))
	if err != nil {
		return nil, fmt.Errorf("read evidence: %w", err)
	}
	defer rows.Close()
	var all []Evidence
	for rows.Next() {
		var v Evidence
		var body string
		var at int64
		if err := rows.Scan(&v.Kind, &v.By, &body, &at); err != nil {
			return nil, fmt.Errorf("read evidence: %w", err)
		}
		v.Body, v.At = json.RawMessage(body), fromMicros(at)
		all = append(all, v)
	}
	return all, rows.Err()
}

// engineActor is the engine itself.
var engineActor = Actor{Kind: ActorEngine, ID: "engine", Name: "engine", Channel: "engine"}

func actorName(a Actor) string {
	if a.Name != "" {
		return a.Name
	}
	return a.ID
}
