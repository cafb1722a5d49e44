package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"countersign/internal/store"
)

// The statements of a durable step: a run moved on by compare-and-swap, its
// step with an output of 600 bytes, its event.
const (
	benchUpdate = "UPDATE bench_run SET version = version + 1, updated_at = $1 WHERE id = $2 AND owner = 'e1' AND fence = 7"
	benchStep   = "INSERT INTO bench_step (run, seq, status, output) VALUES ($1, $2, 'completed', $3)"
	benchEvent  = "INSERT INTO bench_event (run, seq, kind, at) VALUES ($1, $2, 'step_completed', $3)"
)

var benchLine = store.Line{Name: "bench", Dir: ".", FS: fstest.MapFS{"0001_tables.sql": {Data: []byte(`
CREATE TABLE bench_run (id TEXT NOT NULL PRIMARY KEY, owner TEXT NOT NULL, fence INTEGER NOT NULL, version INTEGER NOT NULL, updated_at INTEGER NOT NULL) STRICT;
CREATE TABLE bench_step (run TEXT NOT NULL, seq INTEGER NOT NULL, status TEXT NOT NULL, output TEXT NOT NULL, PRIMARY KEY (run, seq)) STRICT;
CREATE TABLE bench_event (run TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (run, seq)) STRICT;`)}}}

var benchOutput = `"` + strings.Repeat("x", 598) + `"`

func benchOpen(b *testing.B, runs int) (*store.DB, string) {
	path := filepath.Join(b.TempDir(), "bench.db")
	db, err := store.Open(b.Context(), store.Options{Path: path, Lines: []store.Line{benchLine}, MaxBatch: 96})
	if err != nil {
		b.Fatal(err)
	}
	err = db.Update(b.Context(), func(ctx context.Context, tx *store.Tx) error {
		for i := range runs {
			if _, err := tx.Exec(ctx, "INSERT INTO bench_run VALUES ($1, 'e1', 7, 0, 0)", benchRun(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return db, path
}

func benchRun(i int) string { return fmt.Sprintf("run_%026d", i) }

// BenchmarkUpdate is durable steps through Update with so many submitters.
func BenchmarkUpdate(b *testing.B) {
	for _, submitters := range []int{1, 64, 256} {
		b.Run(fmt.Sprint(submitters), func(b *testing.B) {
			db, _ := benchOpen(b, submitters)
			defer db.Close()
			share := b.N/submitters + 1
			b.ReportAllocs()
			b.ResetTimer()
			var all sync.WaitGroup
			for s := range submitters {
				all.Go(func() {
					run := benchRun(s)
					for i := range share {
						err := db.Update(b.Context(), func(ctx context.Context, tx *store.Tx) error {
							now := store.Micros(tx.Now())
							if err := tx.ExecOne(ctx, benchUpdate, now, run); err != nil {
								return err
							}
							if _, err := tx.Exec(ctx, benchStep, run, i, benchOutput); err != nil {
								return err
							}
							_, err := tx.Exec(ctx, benchEvent, run, i, now)
							return err
						})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.StopTimer()
			b.ReportMetric(float64(share*submitters)/b.Elapsed().Seconds(), "steps/s")
			st := db.Stats()
			b.ReportMetric(float64(st.Transactions)/float64(st.Commits), "tx/commit")
		})
	}
}

// BenchmarkRaw is the same statements without a store: one goroutine, prepared
// statements, one transaction per group of so many steps.
func BenchmarkRaw(b *testing.B) {
	for _, group := range []int{1, 64, 256} {
		b.Run(fmt.Sprint(group), func(b *testing.B) {
			db, path := benchOpen(b, group)
			db.Close()
			raw, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&_pragma=cache_size(-16000)&_pragma=temp_store(MEMORY)")
			if err != nil {
				b.Fatal(err)
			}
			defer raw.Close()
			raw.SetMaxOpenConns(1)
			var stmts []*sql.Stmt
			for _, q := range []string{benchUpdate, benchStep, benchEvent} {
				s, err := raw.Prepare(q)
				if err != nil {
					b.Fatal(err)
				}
				stmts = append(stmts, s)
			}
			rounds := b.N/group + 1
			b.ReportAllocs()
			b.ResetTimer()
			for i := range rounds {
				benchGroup(b, raw, stmts, group, i)
			}
			b.StopTimer()
			b.ReportMetric(float64(rounds*group)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

func benchGroup(b *testing.B, raw *sql.DB, stmts []*sql.Stmt, group, i int) {
	tx, err := raw.Begin()
	if err != nil {
		b.Fatal(err)
	}
	update, step, event := tx.Stmt(stmts[0]), tx.Stmt(stmts[1]), tx.Stmt(stmts[2])
	for g := range group {
		run := benchRun(g)
		_, err1 := update.Exec(int64(i), run)
		_, err2 := step.Exec(run, i, benchOutput)
		_, err3 := event.Exec(run, i, int64(i))
		if err1 != nil || err2 != nil || err3 != nil {
			b.Fatal(err1, err2, err3)
		}
	}
	if err := tx.Commit(); err != nil {
		b.Fatal(err)
	}
}
