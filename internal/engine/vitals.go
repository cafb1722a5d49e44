package engine

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"countersign/internal/store"
)

// VitalsMax bounds what counting reads: a number that large says "at least".
const VitalsMax = 100_000

// Vitals are what an operator watches, as the database has it now.
type Vitals struct {
	Open          map[string]int // runs that have not ended, by status; each at most VitalsMax
	Unknown       int            // effects of unknown outcome; at most VitalsMax
	OldestUnknown time.Time      // when the first of them was sent; zero: there is none
}

// openStatuses are those of runs that have not ended.
var openStatuses = []string{Queued, Running, WaitingApproval, WaitingInput, Sleeping, Retrying, Blocked}

const sqlCountRuns = `SELECT COUNT(*) FROM (SELECT 1 FROM run WHERE tenant = $1 AND status = $2 LIMIT $3)`

const sqlCountUnknown = `SELECT COUNT(*), MIN(sent_at) FROM (SELECT sent_at FROM effect WHERE tenant = $1 AND status = 'unknown' LIMIT $2)`

// Vitals counts by indexes alone.
func (e *Engine) Vitals(ctx context.Context, q store.Querier, tenant string) (Vitals, error) {
	v := Vitals{Open: map[string]int{}}
	for _, status := range openStatuses {
		var n int
		if err := q.QueryRow(ctx, sqlCountRuns, tenant, status, VitalsMax).Scan(&n); err != nil {
			return v, fmt.Errorf("count runs: %w", err)
		}
		v.Open[status] = n
	}
	var oldest sql.NullInt64
	if err := q.QueryRow(ctx, sqlCountUnknown, tenant, VitalsMax).Scan(&v.Unknown, &oldest); err != nil {
		return v, fmt.Errorf("count unknown effects: %w", err)
	}
	v.OldestUnknown = fromNull(oldest)
	return v, nil
}
