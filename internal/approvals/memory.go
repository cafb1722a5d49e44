package approvals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign/internal/id"
	"countersign/internal/store"
)

// Refusal is the last rejection of the same call.
type Refusal struct {
	Request id.Approval // empty: it was never rejected
	Run     id.Run
	Digest  string
	By      id.Person
	ByName  string
	Comment string
	At      time.Time
	Times   int // rejections so far
}

const sqlRejected = `SELECT r.id, r.run, r.digest, r.closed_by, r.closed_by_name, r.closed_why, r.closed_at,
		(SELECT count(*) FROM request o WHERE o.tenant = $1 AND o.status = 'rejected' AND o.tool = $2 AND o.params_hash = $3
			AND ($4 = '' OR o.initiator = $4) AND ($5 = '' OR o.run = $5))
	FROM request r WHERE r.tenant = $1 AND r.status = 'rejected' AND r.tool = $2 AND r.params_hash = $3
		AND ($4 = '' OR r.initiator = $4) AND ($5 = '' OR r.run = $5)
	ORDER BY r.closed_at DESC, r.id DESC LIMIT 1`

// PreviouslyRejected returns the last rejection of the tool with exactly these
// parameters that the initiator asked for, in any run. The zero Refusal: none.
// It is never a reason to approve.
func (b *Book) PreviouslyRejected(ctx context.Context, q store.Querier, tenant string, initiator id.Person, tool, paramsHash string) (Refusal, error) {
	return rejected(ctx, q, tenant, string(initiator), "", tool, paramsHash)
}

// RejectedInRun is PreviouslyRejected within one run, whoever asked.
func (b *Book) RejectedInRun(ctx context.Context, q store.Querier, tenant string, run id.Run, tool, paramsHash string) (Refusal, error) {
	return rejected(ctx, q, tenant, "", string(run), tool, paramsHash)
}

func rejected(ctx context.Context, q store.Querier, tenant, initiator, run, tool, paramsHash string) (Refusal, error) {
	var f Refusal
	if initiator == "" && run == "" {
		return f, nil
	}
	err := q.QueryRow(ctx, sqlRejected, tenant, tool, paramsHash, initiator, run).
		Scan(&f.Request, &f.Run, &f.Digest, &f.By, &f.ByName, &f.Comment, nullTime{&f.At}, &f.Times)
	if errors.Is(err, store.ErrNotFound) {
		return Refusal{}, nil
	}
	if err != nil {
		return Refusal{}, fmt.Errorf("look for an earlier rejection: %w", err)
	}
	return f, nil
}
