package approvals

import (
	"context"
	"fmt"
	"time"

	"countersign/internal/id"
	"countersign/internal/store"
)

// PendingMax bounds what counting the pending requests reads.
const PendingMax = 100_000

const sqlPendingSince = `SELECT COUNT(*), MIN(created_at) FROM (SELECT created_at FROM request
	WHERE tenant = $1 AND status = 'pending' AND decide_by > 0 LIMIT $2)`

// PendingSince counts the requests that wait for a decision, up to PendingMax,
// and tells when the oldest of them was made; zero if there is none.
func (b *Book) PendingSince(ctx context.Context, q store.Querier, tenant string) (n int, oldest time.Time, err error) {
	err = q.QueryRow(ctx, sqlPendingSince, tenant, PendingMax).Scan(&n, nullTime{&oldest})
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("count pending requests: %w", err)
	}
	return n, oldest, nil
}

// PendingOf lists the requests of a run that wait for a decision, oldest first.
func (b *Book) PendingOf(ctx context.Context, q store.Querier, tenant string, run id.Run) (all []id.Approval, err error) {
	rows, err := q.Query(ctx, "SELECT id FROM request WHERE tenant = $1 AND run = $2 AND status = 'pending' ORDER BY id", tenant, string(run))
	if err != nil {
		return nil, fmt.Errorf("list what waits in run %s: %w", run, err)
	}
	defer rows.Close()
	for rows.Next() {
		var request id.Approval
		if err := rows.Scan(&request); err != nil {
			return nil, fmt.Errorf("list what waits in run %s: %w", run, err)
		}
		all = append(all, request)
	}
	return all, rows.Err()
}
