package desk

import (
	"context"
	"time"

	"countersign/internal/audit"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// AcceptClock accepts the present time of this machine as right, for a reason,
// although it is more than five minutes earlier than what was recorded before:
// until then nothing is decided and nothing sent (DESIGN section 8). It
// returns by how much the clock is back. Problems: forbidden, invalid,
// clock_is_fine.
func (d *Desk) AcceptClock(ctx context.Context, p identity.Principal, reason string) (back time.Duration, err error) {
	if err := require(p, capOperate, "accept the clock"); err != nil {
		return 0, err
	}
	reason, err = words("/reason", reason, reasonCharsMax)
	if err != nil {
		return 0, err
	}
	var before time.Time
	err = d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		before = tx.Now()
		if !tx.ClockSuspect() {
			return problem.New(problem.Conflict, "clock_is_fine", "The clock has not gone back by more than five minutes. Nothing was changed.")
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	err = d.db.AcceptClock(ctx, func(ctx context.Context, tx *store.Tx) error {
		back = before.Sub(tx.Now())
		_, err := d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: "clock.accepted", Outcome: "accepted",
			Payload: payload(map[string]string{"reason": reason, "before": before.Format(time.RFC3339Nano)})}))
		return err
	})
	return back, err
}
