package desk

import (
	"context"

	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/identity"
	"countersign/internal/store"
)

// Replay walks a run's record again and says where this program would do
// something else. Nothing is called, sent or written. Problems: forbidden,
// not_found, tampered.
func (d *Desk) Replay(ctx context.Context, p identity.Principal, ref string) (engine.Replay, error) {
	var run id.Run
	err := d.viewRun(ctx, p, ref, func(_ context.Context, _ store.Querier, r id.Run) error {
		run = r
		return nil
	})
	if err != nil {
		return engine.Replay{}, err
	}
	return d.engine.Replay(ctx, run)
}
