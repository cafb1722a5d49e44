// Package desk holds the use cases: what a person, a program or the engine may
// do, each as one function that checks authority, opens the one transaction
// that spans the packages below, and records it in the audit log.
//
// It guarantees that every surface (pages, API, command line, engine) decides
// and acts through the same function, and that a change of runs, requests or
// people commits together with its audit entry or not at all. It must not know
// HTTP, HTML or flags.
package desk

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/audit"
	"countersign/internal/definitions"
	"countersign/internal/engine"
	"countersign/internal/identity"
	"countersign/internal/live"
	"countersign/internal/store"
	"countersign/internal/tools"
	"countersign/internal/vault"
)

// Tenant is the one workspace this release ships.
const Tenant = "default"

// Topics of the live hub.
const (
	TopicApprovals = "approvals"
	TopicRuns      = "runs"
	TopicEffects   = "effects"
	// TopicAccess says that sessions, tokens or roles changed: whoever
	// listens must look again whether they still may.
	TopicAccess = "access"
)

// Options is what a desk is made of. All fields but Crash, Observer and
// Logger are needed.
type Options struct {
	DB       *store.DB
	Log      *audit.Log
	People   *identity.Store
	Hub      *live.Hub
	World    engine.World
	Vault    *vault.Vault
	Config   tools.Config
	Owner    string // names this process in leases
	Epoch    int64  // boot epoch of the folder
	Workers  int    // runs driven at once; zero: the engine's default
	Crash    func(window, path string, pass int)
	Observer engine.Observer // metrics and traces; nil: nobody
	Logger   *slog.Logger
}

// Desk is the use cases over one database.
type Desk struct {
	db       *store.DB
	log      *audit.Log
	people   *identity.Store
	hub      *live.Hub
	book     *approvals.Book
	defs     *definitions.Library
	engine   *engine.Engine
	config   tools.Config
	vault    *vault.Vault
	observer engine.Observer
	logger   *slog.Logger

	sweeper *sweeper
	posture posture
}

// New returns a desk whose engine does not run yet: Start starts it.
func New(o Options) *Desk {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Desk{db: o.DB, log: o.Log, people: o.People, hub: o.Hub, config: o.Config,
		defs: definitions.NewLibrary(), vault: o.Vault, observer: o.Observer, logger: o.Logger}
	d.book = approvals.New(folk{d.people})
	d.engine = engine.New(engine.Options{
		DB: o.DB, Vault: o.Vault, Gate: gate{d}, Recorder: recorder{d}, Library: d.defs, World: o.World, Config: o.Config,
		Owner: o.Owner, Epoch: o.Epoch, Crash: o.Crash, Notify: o.Hub.Publish, Observer: o.Observer, Logger: o.Logger, Workers: o.Workers,
	})
	d.sweeper = newSweeper(d)
	return d
}

// Start recovers what an earlier process left and begins to drive runs and to
// expire what is due.
func (d *Desk) Start(ctx context.Context) error {
	if err := d.engine.Start(ctx); err != nil {
		return fmt.Errorf("start the engine: %w", err)
	}
	d.sweeper.start()
	return nil
}

// Stop lets what is under way finish until ctx ends. It may be called twice.
func (d *Desk) Stop(ctx context.Context) error {
	d.sweeper.stop()
	return d.engine.Stop(ctx)
}

// longestWait bounds every waiting read (API.md: 60 s at most).
const longestWait = 60 * time.Second
