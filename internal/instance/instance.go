// Package instance is one data folder, opened: its configuration, its lock,
// its database and keys, and the desk over them.
//
// It guarantees that only the holder of the folder's lock drives runs, that
// definitions are read whole or not at all, and that what was opened is closed
// in the opposite order. It must not know HTTP or flags.
package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"countersign/internal/approvals"
	"countersign/internal/audit"
	"countersign/internal/definitions"
	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/identity"
	"countersign/internal/live"
	"countersign/internal/store"
	"countersign/internal/telemetry"
	"countersign/internal/tools"
	"countersign/internal/vault"
)

// DatabaseFile is the name of the database inside the data folder.
const DatabaseFile = "countersign.db"

// Lines is the whole schema, in the order it is migrated.
func Lines() []store.Line {
	return []store.Line{audit.Migrations, identity.Migrations, definitions.Migrations, vault.Migrations, approvals.Migrations, engine.Migrations, desk.Migrations}
}

// Options says how a folder is opened.
type Options struct {
	Dir    string
	Config Config
	// Drive takes the folder's lock: only then may runs be driven. Without it
	// the folder is opened for administration beside a running server.
	Drive   bool
	Holder  string           // who holds the lock, for whoever finds it taken
	Own     []netip.AddrPort // own listeners, which tools never reach
	Crash   func(window, path string, pass int)
	Logger  *slog.Logger
	Version string // of this program, for traces

	Now   func() time.Time // nil: time.Now
	World engine.World     // what tools reach; nil: the world as it is
}

// Instance is an open data folder.
type Instance struct {
	DB        *store.DB
	Log       *audit.Log
	Desk      *desk.Desk
	Hub       *live.Hub
	Config    Config
	Telemetry *telemetry.Telemetry // nil: neither metrics nor traces are on

	lock   *store.FolderLock
	vault  *vault.Vault
	logger *slog.Logger
}

// flushTimeout bounds how long closing waits for the collector of traces.
const flushTimeout = 3 * time.Second

// Open opens the folder, which is made if it is missing. A folder that
// another process drives gives a *store.HeldError when Drive is set.
func Open(ctx context.Context, o Options) (_ *Instance, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	i := &Instance{Config: o.Config, logger: o.Logger}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.Close())
		}
	}()
	epoch := int64(0)
	if o.Drive {
		if i.lock, err = store.AcquireFolder(o.Dir, o.Holder); err != nil {
			return nil, err
		}
		epoch = i.lock.Epoch()
	}
	if err := settleSwap(o.Dir, o.Drive); err != nil {
		return nil, err
	}
	if i.DB, err = store.Open(ctx, store.Options{Path: filepath.Join(o.Dir, DatabaseFile), Lines: Lines(), Logger: o.Logger, Now: o.Now}); err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	if i.Log, err = audit.Open(ctx, i.DB, o.Dir); err != nil {
		return nil, err
	}
	if o.Drive {
		if err = i.Log.RefuseOlder(ctx); err != nil {
			return nil, err
		}
	}
	if i.vault, err = vault.Open(ctx, i.DB, o.Dir); err != nil {
		return nil, err
	}
	if o.Drive { // in case a death cut a rotation short
		if _, err = i.vault.Rewrap(ctx, i.DB); err != nil {
			return nil, err
		}
	}
	i.Hub = live.NewHub(epoch)
	if err = i.observe(ctx, o); err != nil {
		return nil, err
	}
	if i.Desk, err = i.newDesk(o, epoch); err != nil {
		return nil, err
	}
	if i.Telemetry != nil {
		i.Telemetry.Watch(i.Desk.Vitals)
	}
	return i, nil
}

// observe starts metrics and traces where runs are driven and either is on.
func (i *Instance) observe(ctx context.Context, o Options) error {
	if !o.Drive {
		return nil
	}
	t, err := telemetry.New(ctx, telemetry.Options{Endpoint: o.Config.OTLP, Version: o.Version, Logger: o.Logger})
	if err == nil && (t.Tracing() || o.Config.Metrics != "") {
		i.Telemetry = t
	}
	return err
}

func (i *Instance) newDesk(o Options, epoch int64) (*desk.Desk, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	config := tools.Config{"console": self}
	for name, value := range o.Config.Values {
		config[name] = value
	}
	locks := filepath.Join(o.Dir, "locks")
	if err := os.MkdirAll(locks, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of locks: %w", err)
	}
	var world engine.World = &tools.World{Secrets: o.Config.Secret, Allow: o.Config.Allow, Own: o.Own, LockDir: locks, Logger: o.Logger}
	if o.World != nil {
		world = o.World
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	var observer engine.Observer
	if i.Telemetry != nil {
		observer = i.Telemetry
	}
	return desk.New(desk.Options{Observer: observer, DB: i.DB, Log: i.Log, People: identity.New(), Hub: i.Hub, Vault: i.vault, World: world, Config: config,
		Owner: fmt.Sprintf("%s/%d/%d", host, os.Getpid(), epoch), Epoch: epoch, Crash: o.Crash, Logger: o.Logger}), nil
}

// LoadDefinitions reads the configured folders and installs what is new. The
// error lists every fault with its place; nothing is installed then. Warnings
// are returned for whoever started the program.
func (i *Instance) LoadDefinitions(ctx context.Context) (warnings []string, err error) {
	b, err := definitions.Read(definitions.Folders{
		Workflows: os.DirFS(i.Config.Workflows), Tools: os.DirFS(i.Config.Tools), Policies: os.DirFS(i.Config.Policies)})
	if err != nil {
		return nil, err
	}
	_, err = i.Desk.Install(ctx, desk.Terminal(), b)
	return b.Warnings, err
}

// Close closes what is open, the lock last. It may be called twice.
func (i *Instance) Close() error {
	var errs []error
	if i.Hub != nil {
		i.Hub.Close()
	}
	if i.Log != nil {
		i.Log.Close()
		i.Log = nil
	}
	if i.DB != nil {
		errs = append(errs, i.DB.Close())
		i.DB = nil
	}
	if i.Telemetry != nil { // after the database, whose last functions tell it something
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		if err := i.Telemetry.Close(ctx); err != nil {
			i.logger.Warn("send the last traces", "error", err)
		}
		i.Telemetry = nil
	}
	if i.lock != nil {
		errs = append(errs, i.lock.Release())
		i.lock = nil
	}
	return errors.Join(errs...)
}
