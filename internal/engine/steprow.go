package engine

import (
	"context"
	"database/sql"
	"fmt"

	"countersign/internal/id"
	"countersign/internal/store"
)

const stepColumns = `path, pass, kind, tool, status, attempts, tries, tried_at, retry_at, idempotency_key, input_digest,
	output_at, error, error_class, approval, action, started_at, updated_at`

const sqlPutStep = `INSERT INTO step (tenant, run, ` + stepColumns + `)
	VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20)
	ON CONFLICT (tenant, run, path, pass) DO UPDATE SET status = excluded.status, attempts = excluded.attempts,
	tries = excluded.tries, tried_at = excluded.tried_at, retry_at = excluded.retry_at,
	idempotency_key = excluded.idempotency_key, input_digest = excluded.input_digest, output_at = excluded.output_at,
	error = excluded.error, error_class = excluded.error_class, approval = excluded.approval, action = excluded.action,
	updated_at = excluded.updated_at`

func putStep(ctx context.Context, tx *store.Tx, tenant string, run id.Run, s *Step) error {
	now := tx.Now()
	if s.StartedAt.IsZero() {
		s.StartedAt = now
	}
	s.UpdatedAt = now
	return tx.ExecOne(ctx, sqlPutStep, tenant, string(run), s.Path, s.Pass, s.Kind, s.Tool, s.Status, s.Attempts, s.tries,
		micros(s.triedAt), micros(s.retryAt), s.IdempotencyKey, s.InputDigest, s.outputAt, encodeFailure(s.Error), s.ErrorClass,
		string(s.Approval), string(s.Action), micros(s.StartedAt), micros(s.UpdatedAt))
}

func scanStep(row scanner) (Step, error) {
	var s Step
	var failure sql.NullString
	var tried, retry, started, updated int64
	err := row.Scan(&s.Path, &s.Pass, &s.Kind, &s.Tool, &s.Status, &s.Attempts, &s.tries, &tried, &retry, &s.IdempotencyKey,
		&s.InputDigest, &s.outputAt, &failure, &s.ErrorClass, &s.Approval, &s.Action, &started, &updated)
	if err != nil {
		return Step{}, err
	}
	s.triedAt, s.retryAt, s.StartedAt, s.UpdatedAt = fromMicros(tried), fromMicros(retry), fromMicros(started), fromMicros(updated)
	s.Error, err = decodeFailure(failure)
	return s, err
}

// stepRows reads all step rows of a run, in the order they were begun.
func stepRows(ctx context.Context, q store.Querier, tenant string, run id.Run) ([]Step, error) {
	rows, err := q.Query(ctx, "SELECT "+stepColumns+" FROM step WHERE tenant = $1 AND run = $2 ORDER BY started_at, pass, path", tenant, string(run))
	if err != nil {
		return nil, fmt.Errorf("read steps: %w", err)
	}
	defer rows.Close()
	all := []Step{}
	for rows.Next() {
		s, err := scanStep(rows)
		if err != nil {
			return nil, fmt.Errorf("read step: %w", err)
		}
		all = append(all, s)
	}
	return all, rows.Err()
}
