package engine

import (
	"embed"
	"log/slog"
	"time"

	"countersign/internal/store"
	"countersign/internal/tools"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations are the engine's tables. The ledger is guarded: no transition
// without its audit entry.
var Migrations = store.Line{Name: "engine", FS: migrations, Dir: "migrations", Guarded: []string{"effect", "evidence"}}

// Defaults and limits.
const (
	LeaseDefault        = 30 * time.Second // long enough to ride out a slow disk, short enough to wait for
	PollDefault         = time.Second      // how long a lost hint can delay a run
	WorkersDefault      = 64               // runs driven at once
	MaxTakeoversDefault = 3                // drivers that may die without progress before a run is set aside
	OutputBytesMax      = 1 << 20          // of one step's recorded output
	ReconcileMax        = 8                // questions to the target before a person is asked
)

// Options are what an engine is made of. DB, Gate, Recorder, Library, World
// and Owner are needed.
type Options struct {
	DB       *store.DB
	Gate     Gate
	Recorder Recorder
	Library  Library
	World    World // *tools.World
	Config   tools.Config
	Owner    string // this process, unique among all that ever drove
	Epoch    int64  // of the folder lock; runs led by an older one are taken over at once

	Crash  func(window, path string, pass int) // tests and --crash-at: called in every window of [Windows]
	Notify func(topic, subject string)         // hints for pages: ("runs", run id), ("effects", effect id)
	Jitter func() float64                      // in [0,1); nil: random
	Now    func() time.Time                    // the store's clock; nil: time.Now. Only for polling
	Logger *slog.Logger

	LeaseFor     time.Duration // 0: LeaseDefault
	PollEvery    time.Duration // 0: PollDefault
	Workers      int           // 0: WorkersDefault
	MaxTakeovers int           // 0: MaxTakeoversDefault
}
