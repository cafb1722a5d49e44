package approvals

import (
	"context"
	"fmt"
	"time"

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
