package audit

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"countersign/internal/audit/receipt"
	"countersign/internal/store"

	"golang.org/x/mod/sumdb/tlog"
)

//go:embed migrations
var migrations embed.FS

// Migrations is this package's line of the database schema.
var Migrations = store.Line{Name: "audit", FS: migrations, Dir: "migrations"}

// Log is the audit log of one database.
type Log struct {
	db       *store.DB
	dir      string
	instance string
	epoch    int64
	copies   *headCopier

	mu       sync.Mutex // protects what follows
	ring     *keyring   // replaced as a whole, never changed
	verified map[string]receipt.Head
	pending  map[string]map[int64]written // by tenant and place: what Append wrote and no commit sealed yet
	reached  map[string]int64             // by tenant: the largest size this process saw committed
	trouble  string                       // why the heads beside the database do not fit it
}

// written is the leaf of an entry that this process appended.
type written struct {
	leaf     tlog.Hash
	rotation bool // the entry hands over to the next key
}

// Open opens the log of the database whose keys lie in dir. The first start
// makes a key pair and an entry that names its public half; a log that has
// entries but no key file is refused, since a new key would hide that the old
// one is gone. Close must be called.
func Open(ctx context.Context, db *store.DB, dir string) (*Log, error) {
	l := &Log{db: db, dir: dir, verified: map[string]receipt.Head{}, pending: map[string]map[int64]written{}, reached: map[string]int64{}}
	if err := l.identify(ctx); err != nil {
		return nil, err
	}
	if err := l.loadKeys(ctx); err != nil {
		return nil, err
	}
	if err := l.resumeRotation(ctx); err != nil {
		return nil, err
	}
	l.copies = newHeadCopier(l.copyHeads)
	l.copies.changed() // a tail that was cut while nobody ran is noticed now
	db.BeforeCommit(l.seal)
	if err := l.begin(ctx); err != nil {
		return nil, err
	}
	l.copies.start()
	return l, nil
}

// Close writes the last heads beside the database; it may be called twice.
func (l *Log) Close() { l.copies.stop() }

// Public returns the verifier key, which receipts are checked with.
func (l *Log) Public() string { return l.keys().current.public }

// Trouble says why the signed heads beside the database do not fit it, as
// after a tail was cut; "" when they fit. They are then kept as they are.
func (l *Log) Trouble() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trouble
}

func (l *Log) keys() *keyring {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ring
}

const (
	sqlInstance    = `SELECT name, epoch FROM audit_instance WHERE one = 1`
	sqlNewInstance = `INSERT INTO audit_instance (one, name, epoch) VALUES (1, $1, 1)`
)

// identify reads the installation's name, or makes one up the first time.
func (l *Log) identify(ctx context.Context) error {
	return l.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		err := tx.QueryRow(ctx, sqlInstance).Scan(&l.instance, &l.epoch)
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		l.instance, l.epoch = strings.ToLower(rand.Text()[:10]), 1
		_, err = tx.Exec(ctx, sqlNewInstance, l.instance)
		return err
	})
}

// instanceTenant is the log of what belongs to no tenant.
const instanceTenant = ""

// begin makes the first entry of the instance's log, which names the key.
func (l *Log) begin(ctx context.Context) error {
	return l.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		var size int64
		err := tx.QueryRow(ctx, sqlSize, instanceTenant).Scan(&size)
		if err == nil && size > 0 || err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		_, err = l.Append(ctx, tx, Entry{Tenant: instanceTenant, Actor: Actor{Kind: "system", ID: "audit", Name: "first start"}, Channel: "console",
			Action: "audit.opened", Outcome: "ok", Authority: map[string]string{"key": l.Public()}})
		return err
	})
}

// origin is the first line of a tenant's heads.
func (l *Log) origin(tenant string) string {
	return fmt.Sprintf("%s%d", l.originBelow(tenant), l.epoch)
}

// originBelow is the origin without the epoch.
func (l *Log) originBelow(tenant string) string {
	if tenant == instanceTenant {
		tenant = "instance"
	}
	return fmt.Sprintf("countersign/%s/%s/", l.instance, tenant)
}

func (l *Log) headPath() string { return filepath.Join(l.dir, HeadFile) }
