package desk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign/internal/audit"
	"countersign/internal/identity"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// DrillAges is how long a drill speaks for a workflow version: targets, tools
// and people change.
const DrillAges = 30 * 24 * time.Hour

// Drill is the last drill of a workflow version.
type Drill struct {
	Cases    int       `json:"cases"`    // crashes that were rehearsed
	Findings int       `json:"findings"` // 0: nothing was doubled, lost or repeated
	Status   string    `json:"status"`   // how the run ended undisturbed
	At       time.Time `json:"at"`
	Old      bool      `json:"old"` // older than DrillAges
}

const sqlPutDrill = `INSERT INTO drill (tenant, digest, cases, findings, status, at) VALUES ($1, $2, $3, $4, $5, $6)
	ON CONFLICT (tenant, digest) DO UPDATE SET cases = excluded.cases, findings = excluded.findings, status = excluded.status, at = excluded.at`

// RecordDrill keeps what a drill of a workflow version found. Problems:
// forbidden, not_found for a version that is not stored here.
func (d *Desk) RecordDrill(ctx context.Context, p identity.Principal, digest string, held Drill) error {
	if err := require(p, capOperate, "record drills"); err != nil {
		return err
	}
	return d.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		w, err := d.defs.Workflow(ctx, tx, Tenant, digest)
		if errors.Is(err, store.ErrNotFound) || problem.HasCode(err, "definition_gone") {
			return problem.New(problem.NotFound, "not_found", "This version of the workflow is not in the database yet: console serve reads it in.")
		}
		if err != nil {
			return err
		}
		if err := tx.ExecOne(ctx, sqlPutDrill, Tenant, digest, held.Cases, held.Findings, held.Status, store.Micros(tx.Now())); err != nil {
			return fmt.Errorf("record the drill: %w", err)
		}
		_, err = d.log.Append(ctx, tx, d.entry(p, audit.Entry{Action: "workflow.drilled", Subject: "workflow " + w.Name, Digest: digest, Outcome: held.Status,
			Payload: payload(map[string]any{"version": w.Version, "cases": held.Cases, "findings": held.Findings})}))
		return err
	})
}

// lastDrill returns the last drill of a workflow version; nil: there was none.
func (d *Desk) lastDrill(ctx context.Context, q store.Querier, digest string) (*Drill, error) {
	var held Drill
	var at int64
	err := q.QueryRow(ctx, "SELECT cases, findings, status, at FROM drill WHERE tenant = $1 AND digest = $2", Tenant, digest).
		Scan(&held.Cases, &held.Findings, &held.Status, &at)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the last drill: %w", err)
	}
	held.At = store.FromMicros(at)
	held.Old = d.now().Sub(held.At) > DrillAges
	return &held, nil
}
