package enginetest

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"countersign/internal/engine"
	"countersign/internal/id"
	"countersign/internal/store"
	"countersign/internal/testkit"
	"countersign/internal/workflow"
)

// Tenant is the one that everything here belongs to.
const Tenant = "default"

// Rig is an engine with all it needs around it.
type Rig struct {
	T      testing.TB
	DB     *store.DB
	Path   string // of the database, if NewRig opened it
	Lib    *Library
	Gate   *Gate
	World  engine.World
	Script *Script // the World, unless a test gave another one
	Engine *engine.Engine
	Opts   engine.Options
}

// NewRig opens a database and makes an engine of epoch 1 that nobody started.
func NewRig(t testing.TB, lib *Library, change ...func(*engine.Options)) *Rig {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	r := NewRigOn(t, testkit.OpenAt(t, path, Lines()...), lib, change...)
	r.Path = path
	return r
}

// NewRigClock is NewRig with a clock that the test sets.
func NewRigClock(t testing.TB, lib *Library, now func() time.Time, change ...func(*engine.Options)) *Rig {
	t.Helper()
	db := testkit.OpenWith(t, store.Options{Lines: Lines(), Now: now})
	return NewRigOn(t, db, lib, append(change, func(o *engine.Options) { o.Now = now })...)
}

// NewRigOn makes the engine on a database that is open already.
func NewRigOn(t testing.TB, db *store.DB, lib *Library, change ...func(*engine.Options)) *Rig {
	t.Helper()
	r := &Rig{T: t, DB: db, Lib: lib, Gate: &Gate{}, Script: &Script{}}
	r.Opts = engine.Options{DB: db, Gate: r.Gate, Recorder: Recorder{}, Library: lib, World: r.Script, Owner: "driver-1", Epoch: 1,
		Jitter: func() float64 { return 0 }, PollEvery: 20 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))}
	for _, c := range change {
		c(&r.Opts)
	}
	r.World = r.Opts.World
	r.Engine = r.engine(r.Opts)
	return r
}

func (r *Rig) engine(o engine.Options) *engine.Engine {
	e := engine.New(o)
	r.T.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = e.Stop(ctx)
	})
	return e
}

// Restart is what follows when the process ended: a new engine of the next
// epoch on the same database.
func (r *Rig) Restart(change ...func(*engine.Options)) *engine.Engine {
	r.T.Helper()
	r.Opts.Epoch++
	r.Opts.Crash = nil
	for _, c := range change {
		c(&r.Opts)
	}
	r.Engine = r.engine(r.Opts)
	return r.Engine
}

// Person is somebody who acts.
var Person = engine.Actor{Kind: engine.ActorPerson, ID: "usr_ana", Name: "Ana", How: "session", Channel: "browser"}

// Begin makes a run.
func (r *Rig) Begin(w *workflow.Workflow, input, key string) engine.Run {
	r.T.Helper()
	run, _, err := r.TryBegin(w, input, key)
	if err != nil {
		r.T.Fatalf("create run: %v", err)
	}
	return run
}

// TryBegin makes a run, or not.
func (r *Rig) TryBegin(w *workflow.Workflow, input, key string) (run engine.Run, created bool, err error) {
	r.T.Helper()
	prepared, err := w.PrepareInput(json.RawMessage(input))
	if err != nil {
		return engine.Run{}, false, err
	}
	err = r.DB.Update(r.T.Context(), func(ctx context.Context, tx *store.Tx) error {
		run, created, err = r.Engine.Create(ctx, tx, engine.Creation{Tenant: Tenant, Workflow: w, Tools: r.Lib.Digests(), Input: prepared, Key: key,
			Initiator: "usr_ben", InitiatorName: "Ben", Actor: engine.Actor{Kind: engine.ActorPerson, ID: "usr_ben", Name: "Ben"}})
		return err
	})
	return run, created, err
}

// Drive drives a run until it waits or ends.
func (r *Rig) Drive(run id.Run) engine.Run {
	r.T.Helper()
	got, err := r.Engine.Drive(r.T.Context(), run)
	if err != nil {
		r.T.Fatalf("drive %s: %v", run, err)
	}
	return got
}

// CrashingDrive drives until a simulated crash; it reports whether one came.
func (r *Rig) CrashingDrive(run id.Run) (crashed bool) {
	defer func() {
		if v := recover(); v != nil {
			if _, ok := v.(engine.Crashed); !ok {
				panic(v)
			}
			crashed = true
		}
	}()
	_, _ = r.Engine.Drive(r.T.Context(), run)
	return false
}

// CrashAt makes a crash hook that fires once, at the point.
func CrashAt(t testing.TB, point string) func(window, path string, pass int) {
	t.Helper()
	c, err := engine.ParseCrash(point)
	if err != nil {
		t.Fatalf("crash point: %v", err)
	}
	done := false
	return func(window, path string, pass int) {
		if !done && c.Matches(window, path, pass) {
			done = true
			panic(engine.Crashed{Window: window, Path: path})
		}
	}
}

// Decide rules on the request that the run waits for.
func (r *Rig) Decide(run engine.Run, status, comment string) {
	r.T.Helper()
	for _, w := range run.WaitingFor {
		if w.Kind == engine.WaitApproval {
			r.DecideRequest(run.ID, id.Approval(w.Subject), status, comment)
			return
		}
	}
	r.T.Fatalf("run %s (%s) waits for no approval: %+v", run.ID, run.Status, run.WaitingFor)
}

// DecideRequest rules on one request and wakes its run.
func (r *Rig) DecideRequest(run id.Run, apr id.Approval, status, comment string) {
	r.T.Helper()
	err := r.DB.Update(r.T.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := tx.ExecOne(ctx, "UPDATE fake_request SET status = $1, author = 'Ana', comment = $2 WHERE id = $3 AND status = 'pending'", status, comment, string(apr)); err != nil {
			return err
		}
		return r.Engine.Wake(ctx, tx, run)
	})
	if err != nil {
		r.T.Fatalf("decide %s: %v", apr, err)
	}
}

// Ruling reads what the gate says of a request.
func (r *Rig) Ruling(apr id.Approval) (got engine.Ruling) {
	r.T.Helper()
	r.View(func(ctx context.Context, q store.Querier) (err error) {
		got, err = r.Gate.Ruling(ctx, q, apr)
		return err
	})
	return got
}

// Run reads a run.
func (r *Rig) Run(run id.Run) (got engine.Run) {
	r.T.Helper()
	r.View(func(ctx context.Context, q store.Querier) (err error) {
		got, err = r.Engine.Run(ctx, q, Tenant, run)
		return err
	})
	return got
}

// Steps reads its steps.
func (r *Rig) Steps(run id.Run) (got []engine.Step) {
	r.T.Helper()
	r.View(func(ctx context.Context, q store.Querier) (err error) {
		got, err = r.Engine.Steps(ctx, q, Tenant, run)
		return err
	})
	return got
}

// Effects reads its effects.
func (r *Rig) Effects(run id.Run) (got []engine.Effect) {
	r.T.Helper()
	r.View(func(ctx context.Context, q store.Querier) (err error) {
		got, err = r.Engine.Effects(ctx, q, Tenant, run)
		return err
	})
	return got
}

// Recorded counts audit records of an action.
func (r *Rig) Recorded(action string) (n int) {
	r.T.Helper()
	r.View(func(ctx context.Context, q store.Querier) (err error) {
		n, err = Recorded(ctx, q, action)
		return err
	})
	return n
}

// View reads.
func (r *Rig) View(fn func(ctx context.Context, q store.Querier) error) {
	r.T.Helper()
	if err := r.DB.View(context.WithoutCancel(r.T.Context()), fn); err != nil {
		r.T.Fatalf("read: %v", err)
	}
}

// Exec changes the database behind the engine's back.
func (r *Rig) Exec(query string, args ...any) {
	r.T.Helper()
	err := r.DB.Update(r.T.Context(), func(ctx context.Context, tx *store.Tx) error {
		tx.Audited()
		_, err := tx.Exec(ctx, query, args...)
		return err
	})
	if err != nil {
		r.T.Fatalf("change behind the engine's back: %v", err)
	}
}
