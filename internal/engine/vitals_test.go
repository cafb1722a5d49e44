package engine_test

import (
	"context"
	"strings"
	"testing"

	"countersign/internal/engine"
	. "countersign/internal/engine/enginetest"
	"countersign/internal/store"
)

func vitals(r *Rig) (v engine.Vitals) {
	r.View(func(ctx context.Context, q store.Querier) (err error) {
		v, err = r.Engine.Vitals(ctx, q, Tenant)
		return err
	})
	return v
}

func TestVitals_CountWhatIsOpen(t *testing.T) {
	r := NewRig(t, NewLibrary(t, AllTools...), offline, func(o *engine.Options) { o.Crash = CrashAt(t, "after-effect:write") })
	w := r.Lib.Add(t, ReadThenWrite("write.plain"))
	r.Begin(w, `{}`, "queued")
	r.Drive(r.Begin(w, `{}`, "waits").ID)
	unknown := r.Begin(w, `{}`, "unknown")
	r.Decide(r.Drive(unknown.ID), engine.Approved, "")
	if v := vitals(r); v.Unknown != 0 || !v.OldestUnknown.IsZero() {
		t.Errorf("before anything was sent %d effects are unknown since %s", v.Unknown, v.OldestUnknown)
	}
	if !r.CrashingDrive(unknown.ID) {
		t.Fatal("the drive did not crash")
	}
	r.Restart()
	wantStatus(t, r.Drive(unknown.ID), engine.Blocked)
	v := vitals(r)
	if v.Open[engine.Queued] != 1 || v.Open[engine.WaitingApproval] != 1 || v.Open[engine.Blocked] != 1 || v.Open[engine.Sleeping] != 0 || len(v.Open) != 7 {
		t.Errorf("open are %v", v.Open)
	}
	if sent := r.Effects(unknown.ID)[0].SentAt; v.Unknown != 1 || !v.OldestUnknown.Equal(sent) {
		t.Errorf("%d effects are unknown since %s, want 1 since %s", v.Unknown, v.OldestUnknown, sent)
	}
}

// A scrape comes every few seconds: it must not read whole tables.
func TestVitals_AreReadByIndexes(t *testing.T) {
	r := NewRig(t, NewLibrary(t, AllTools...), offline)
	for _, query := range engine.VitalsQueries {
		args := []any{Tenant, engine.Queued, 10}[:strings.Count(query, "$")]
		r.View(func(ctx context.Context, q store.Querier) error {
			rows, err := q.Query(ctx, "EXPLAIN QUERY PLAN "+query, args...)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var id, parent, unused int
				var detail string
				if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
					return err
				}
				if strings.Contains(detail, "SCAN run") || strings.Contains(detail, "SCAN effect") || strings.Contains(detail, "PRIMARY KEY") {
					t.Errorf("%s\nis read by %s", query, detail)
				}
			}
			return rows.Err()
		})
	}
}
