package desk

import (
	"context"

	"countersign/internal/audit"
	"countersign/internal/engine"
	"countersign/internal/store"
)

// recorder writes what the engine does into the audit log, in its
// transactions.
type recorder struct{ *Desk }

// opens are the actions that change what waits for people to answer: lists of
// it look again.
var opens = map[string]bool{"run.ask": true, "run.answer": true, "run.ask_expired": true, "run.ask_withdrawn": true, "run.cancel": true, "run.migrate": true}

// Record appends one entry. The digest of the request that is sent goes into
// the entry itself, so that a receipt can show it is the approved one.
func (r recorder) Record(ctx context.Context, tx *store.Tx, rec engine.Record) error {
	e := audit.Entry{
		Tenant: rec.Tenant, Actor: audit.Actor{Kind: rec.Actor.Kind, ID: rec.Actor.ID, Name: rec.Actor.Name, How: rec.Actor.How},
		Channel: rec.Actor.Channel, Action: rec.Action, Subject: rec.Subject, Run: rec.Run, Digest: rec.Digest, Outcome: rec.Outcome,
	}
	if facts, ok := rec.Payload.(map[string]any); ok {
		if request, ok := facts["request"].(string); ok {
			e.Authority = map[string]string{"request_digest": request}
		}
	}
	if rec.Payload != nil {
		e.Payload = payload(rec.Payload)
	}
	if _, err := r.log.Append(ctx, tx, e); err != nil {
		return err
	}
	if opens[rec.Action] {
		r.announce(tx, TopicApprovals, rec.Subject)
	}
	return nil
}
