package enginetest

import (
	"context"

	"countersign/internal/engine"
	"countersign/internal/store"
)

// Recorder keeps what was recorded, in a table.
type Recorder struct{}

var _ engine.Recorder = Recorder{}

// Record keeps one thing and marks the transaction as audited.
func (Recorder) Record(ctx context.Context, tx *store.Tx, r engine.Record) error {
	tx.Audited()
	return tx.ExecOne(ctx, "INSERT INTO fake_record (action, subject, run, outcome, actor) VALUES ($1,$2,$3,$4,$5)", r.Action, r.Subject, string(r.Run), r.Outcome, r.Actor.ID)
}

// Recorded counts what was recorded under an action.
func Recorded(ctx context.Context, q store.Querier, action string) (n int, err error) {
	err = q.QueryRow(ctx, "SELECT count(*) FROM fake_record WHERE action = $1", action).Scan(&n)
	return n, err
}
