package engine

import (
	"context"
	"embed"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"countersign/internal/id"

	"countersign/internal/store"
	"countersign/internal/tools"
	"countersign/internal/vault"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations are the engine's tables. The ledger and what is asked of people
// are guarded: no transition without its audit entry.
var Migrations = store.Line{Name: "engine", FS: migrations, Dir: "migrations", Guarded: []string{"effect", "evidence", "question"}}

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
	Vault    *vault.Vault // nil: what is declared sensitive is refused
	Owner    string       // this process, unique among all that ever drove
	Epoch    int64        // of the folder lock; runs led by an older one are taken over at once

	Crash    func(window, path string, pass int) // tests and --crash-at: called in every window of [Windows]
	Notify   func(topic, subject string)         // hints for pages: ("runs", run id), ("effects", effect id)
	Observer Observer                            // metrics and traces; nil: nobody
	Jitter   func() float64                      // in [0,1); nil: random
	Now      func() time.Time                    // nil: that of DB. For polling and for spans, outside transactions
	Logger   *slog.Logger

	LeaseFor     time.Duration // 0: LeaseDefault
	PollEvery    time.Duration // 0: PollDefault
	Workers      int           // 0: WorkersDefault
	MaxTakeovers int           // 0: MaxTakeoversDefault
}

// Engine drives runs. It is safe for concurrent use.
type Engine struct {
	o   Options
	log *slog.Logger

	hints   chan struct{}      // something may be due; holds one
	slots   chan struct{}      // one for every run the loop drives
	hard    context.Context    // ends when even sending must stop
	hardEnd context.CancelFunc //
	halt    chan struct{}      // closed by Stop
	drives  sync.WaitGroup     // the loop and every drive it or Resume began
	noRenew atomic.Bool        // tests: a process that stands still

	mu      sync.Mutex                         // protects what follows
	active  map[id.Run]context.CancelCauseFunc // runs driven by this process
	started bool
	stopped bool
}

// New makes an engine; nothing runs until Start, Resume or Drive.
func New(o Options) *Engine {
	o.setDefaults()
	e := &Engine{o: o, log: o.Logger, hints: make(chan struct{}, 1), slots: make(chan struct{}, o.Workers),
		halt: make(chan struct{}), active: map[id.Run]context.CancelCauseFunc{}}
	e.hard, e.hardEnd = context.WithCancel(context.Background())
	return e
}

func (o *Options) setDefaults() {
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	if o.Now == nil {
		o.Now = o.DB.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.LeaseFor <= 0 {
		o.LeaseFor = LeaseDefault
	}
	if o.PollEvery <= 0 {
		o.PollEvery = PollDefault
	}
	if o.Workers <= 0 {
		o.Workers = WorkersDefault
	}
	if o.MaxTakeovers <= 0 {
		o.MaxTakeovers = MaxTakeoversDefault
	}
}

// update writes, whatever becomes of the caller: what is under way is recorded.
func (e *Engine) update(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	return e.o.DB.Update(context.WithoutCancel(ctx), fn)
}

func (e *Engine) record(ctx context.Context, tx *store.Tx, r Record) error {
	return e.o.Recorder.Record(ctx, tx, r)
}

// notify tells pages that something changed.
func (e *Engine) notify(topic, subject string) {
	if e.o.Notify != nil {
		e.o.Notify(topic, subject)
	}
}

// hint tells the loop that something may be due. A lost hint costs PollEvery.
func (e *Engine) hint() {
	select {
	case e.hints <- struct{}{}:
	default:
	}
}

// untilHardStop is a context for sending: neither a cancelled run nor a lost
// lease cuts a sending short, because that would only hide its answer.
func (e *Engine) untilHardStop(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(e.hard, cancel)
	return ctx, func() { stop(); cancel() }
}
