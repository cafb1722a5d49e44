package engine

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"
)

const runColumns = `tenant, id, key, thread, workflow, workflow_version, workflow_digest, tools, status, version, head, step,
	waiting_for, initiator, initiator_name, on_behalf_of, input, output, error, versions, trace_id, lease_owner, lease_until,
	fence, epoch, crashes, signals, wake_at, cancel_reason, cancel_by, created_at, updated_at, finished_at, restored_at`

// errNoRun is what another tenant's run looks like, too.
var errNoRun = problem.New(problem.NotFound, "not_found", "There is no such run.")

func scanRun(row scanner) (Run, error) {
	var r Run
	var key, output, failure, owner, reason, by sql.NullString
	var until, wake, finished, restored sql.NullInt64
	var created, updated int64
	var tools, waiting, input, versions string
	err := row.Scan(&r.Tenant, &r.ID, &key, &r.Thread, &r.Workflow, &r.WorkflowVersion, &r.WorkflowDigest, &tools, &r.Status,
		&r.Version, &r.head, &r.Step, &waiting, &r.Initiator, &r.InitiatorName, &r.OnBehalfOf, &input, &output, &failure,
		&versions, &r.TraceID, &owner, &until, &r.Lease.Fence, &r.epoch, &r.crashes, &r.signals, &wake, &reason, &by,
		&created, &updated, &finished, &restored)
	if err != nil {
		return Run{}, err
	}
	r.Key, r.Lease.Owner, r.CancelReason, r.cancelled = key.String, owner.String, reason.String, reason.Valid
	r.Input, r.Output, r.Versions = json.RawMessage(input), raw(output), json.RawMessage(versions)
	r.Lease.Until, r.WakeAt, r.FinishedAt, r.RestoredAt = fromNull(until), fromNull(wake), fromNull(finished), fromNull(restored)
	r.CreatedAt, r.UpdatedAt = fromMicros(created), fromMicros(updated)
	if r.Error, err = decodeFailure(failure); err != nil {
		return Run{}, fmt.Errorf("error of run %s: %w", r.ID, err)
	}
	if by.Valid {
		err = json.Unmarshal([]byte(by.String), &r.cancelBy)
	}
	return r, errors.Join(err, json.Unmarshal([]byte(waiting), &r.WaitingFor), json.Unmarshal([]byte(tools), &r.tools))
}

// oneRun reads the run that the condition names.
func oneRun(ctx context.Context, q store.Querier, where string, args ...any) (Run, error) {
	r, err := scanRun(q.QueryRow(ctx, "SELECT "+runColumns+" FROM run WHERE "+where, args...))
	if errors.Is(err, store.ErrNotFound) {
		return Run{}, errNoRun
	}
	if err != nil {
		return Run{}, fmt.Errorf("read run: %w", err)
	}
	return r, nil
}

func runByID(ctx context.Context, q store.Querier, run id.Run) (Run, error) {
	return oneRun(ctx, q, "id = $1", string(run))
}

// find reads a run on its own snapshot.
func (e *Engine) find(ctx context.Context, run id.Run) (r Run, err error) {
	err = e.o.DB.View(ctx, func(ctx context.Context, q store.Querier) error {
		r, err = runByID(ctx, q, run)
		return err
	})
	return r, err
}
