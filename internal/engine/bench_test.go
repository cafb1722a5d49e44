package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/store"
)

// stepsPerRun is long enough for claim and end to weigh little.
const stepsPerRun = 50

// BenchmarkDurableSteps measures read steps that cost nothing but their
// durability (synchronous=FULL), with 1 and 64 runs in flight, beside the raw
// writer that commits the same rows in the same way. ratio_to_raw is the part
// of the raw writer's rate that is left once planning, verifying, leases and
// digests are paid for.
func BenchmarkDurableSteps(b *testing.B) {
	for _, inFlight := range []int{1, 64} {
		b.Run(fmt.Sprintf("runs=%d", inFlight), func(b *testing.B) {
			r, runs := manySteps(b, inFlight)
			b.ResetTimer()
			start := time.Now()
			each(inFlight, len(runs), func(i int) {
				if got, err := r.Engine.Drive(context.Background(), runs[i].ID); err != nil || got.Status != engine.Completed {
					b.Errorf("drive: %s, %v", got.Status, err)
				}
			})
			took := time.Since(start)
			b.StopTimer()
			rate := float64(len(runs)*stepsPerRun) / took.Seconds()
			raw := rawRate(b, r, inFlight, len(runs)*stepsPerRun)
			b.ReportMetric(rate, "steps/s")
			b.ReportMetric(raw, "raw_steps/s")
			b.ReportMetric(rate/raw, "ratio_to_raw")
		})
	}
}

// manySteps makes about b.N steps' worth of runs, at least one for each in flight.
func manySteps(b *testing.B, inFlight int) (*Rig, []engine.Run) {
	b.Helper()
	var src strings.Builder
	src.WriteString("format: 1\nworkflow: many\nversion: 1\ntitle: Many\ninput: {type: object, additionalProperties: false}\nsteps:\n")
	for i := range stepsPerRun {
		fmt.Fprintf(&src, "  - {id: s%d, call: docs.read, with: {q: \"x\"}}\n", i)
	}
	r := NewRig(b, NewLibrary(b, AllTools...), offline, func(o *engine.Options) { o.Logger = slog.New(slog.DiscardHandler) })
	w := r.Lib.Add(b, src.String())
	runs := make([]engine.Run, max(inFlight, b.N/stepsPerRun))
	for i := range runs {
		runs[i] = r.Begin(w, `{}`, "")
	}
	return r, runs
}

// each calls do for 0..n-1 from so many goroutines.
func each(inFlight, n int, do func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range inFlight {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}

// rawRate writes the rows of n steps, one transaction a step, into the same
// database, with nothing around them: no planning, no digests, no checks.
func rawRate(b *testing.B, r *Rig, inFlight, n int) float64 {
	b.Helper()
	var run, event, creator, digest string
	r.View(func(ctx context.Context, q store.Querier) error {
		return q.QueryRow(ctx, "SELECT run, event, creator, digest FROM checkpoint WHERE version = 3 LIMIT 1").Scan(&run, &event, &creator, &digest)
	})
	for i := range inFlight {
		r.Exec(`INSERT INTO run (tenant, id, thread, workflow, workflow_version, workflow_digest, tools, status, version, head, step, waiting_for,
			initiator, initiator_name, on_behalf_of, input, versions, trace_id, lease_owner, lease_until, fence, epoch, crashes, signals, wake_at,
			created_at, updated_at) VALUES ('raw', $1, '', 'w', 1, $2, '{}', 'running', 0, $2, '', '[]', 'a', 'b', '', '{}', '{}', 't', 'raw', 1, 1, 0, 0, 0, 1, 1, 1)`,
			fmt.Sprint("raw", i), digest)
	}
	start := time.Now()
	var worker atomic.Int64
	each(inFlight, inFlight, func(int) {
		id := fmt.Sprint("raw", worker.Add(1)-1)
		for v := range n / inFlight {
			err := r.DB.Update(context.Background(), func(ctx context.Context, tx *store.Tx) error {
				return rawStep(ctx, tx, id, v, event, creator, digest)
			})
			if err != nil {
				b.Error(err)
			}
		}
	})
	return float64(n/inFlight*inFlight) / time.Since(start).Seconds()
}

func rawStep(ctx context.Context, tx *store.Tx, run string, v int, event, creator, digest string) error {
	now := store.Micros(tx.Now())
	err := tx.ExecOne(ctx, `INSERT INTO checkpoint (tenant, run, version, path, pass, kind, event, output, output_digest, creator,
		engine, state_schema, digest, previous, created_at) VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15)`,
		"raw", run, v+1, "s", 1, "step_completed", event, `{"text":"read"}`, digest, creator, "countersign.engine/1", 1, digest, digest, now)
	if err != nil {
		return err
	}
	err = tx.ExecOne(ctx, `INSERT INTO step (tenant, run, path, pass, kind, tool, status, attempts, tries, tried_at, retry_at, idempotency_key, input_digest,
		output_at, error, error_class, approval, action, started_at, updated_at) VALUES ($1,$2,$3,1,'call','docs.read','completed',1,0,0,0,$4,$5,$6,NULL,'','','',$7,$7)`,
		"raw", run, fmt.Sprint("s", v), "cs_0123456789012345678901234567890123456789012345ab", digest, v+1, now)
	if err != nil {
		return err
	}
	return tx.ExecOne(ctx, `UPDATE run SET version = $1, head = $2, status = 'running', step = $3, waiting_for = '[]', output = NULL, error = NULL, crashes = 0,
		updated_at = $4, finished_at = NULL WHERE tenant = 'raw' AND id = $5 AND lease_owner = 'raw' AND fence = 1 AND version = $6`,
		v+1, digest, fmt.Sprint("s", v), now, run, v)
}
