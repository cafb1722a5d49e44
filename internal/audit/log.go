package audit

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"countersign/internal/audit/receipt"
	"countersign/internal/problem"
	"countersign/internal/store"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

//go:embed migrations
var migrations embed.FS

// Migrations is this package's line of the database schema.
var Migrations = store.Line{Name: "audit", FS: migrations, Dir: "migrations"}

// Names of the files beside the database.
const (
	KeyFile    = "audit.key"  // the signing key: readable by the service alone, not in backups
	PublicFile = "audit.pub"  // its verifier key: copy it to whoever checks receipts
	HeadFile   = "audit.head" // the last signed heads, outside the database
)

// Log is the audit log of one database.
type Log struct {
	db       *store.DB
	dir      string
	signer   note.Signer
	verifier note.Verifier
	public   string
	instance string
	epoch    int64

	dirty  atomic.Bool // an Append may have happened since the last seal
	copies *headCopier

	mu       sync.Mutex // protects what follows
	verified map[string]receipt.Head
	own      map[tlog.Hash]bool // leaves appended since the last seal; nothing else is signed
}

// Open opens the log of the database whose keys lie in dir. The first start
// makes a key pair; a log that has entries but no key file is refused, since
// a new key would hide that the old one is gone. Close must be called.
func Open(ctx context.Context, db *store.DB, dir string) (*Log, error) {
	l := &Log{db: db, dir: dir, verified: map[string]receipt.Head{}, own: map[tlog.Hash]bool{}}
	if err := l.identify(ctx); err != nil {
		return nil, err
	}
	if err := l.loadKey(ctx); err != nil {
		return nil, err
	}
	db.BeforeCommit(l.seal)
	l.copies = newHeadCopier(l.headPath(), db)
	l.copies.start()
	return l, nil
}

// Close writes the last heads beside the database; it may be called twice.
func (l *Log) Close() { l.copies.stop() }

// Public returns the verifier key, which receipts are checked with.
func (l *Log) Public() string { return l.public }

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

func (l *Log) loadKey(ctx context.Context) error {
	path := filepath.Join(l.dir, KeyFile)
	secret, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := l.refuseNewKey(ctx, path); err != nil {
			return err
		}
		secret, err = l.makeKey(path)
		if err != nil {
			return err
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the audit key: %w", err)
	}
	if l.signer, err = note.NewSigner(strings.TrimSpace(string(secret))); err != nil {
		return fmt.Errorf("the audit key %s is damaged: %w; restore it from where you keep it", path, err)
	}
	public, err := os.ReadFile(filepath.Join(l.dir, PublicFile))
	if err != nil {
		return fmt.Errorf("read the audit key's public half: %w", err)
	}
	l.public = strings.TrimSpace(string(public))
	if l.verifier, err = note.NewVerifier(l.public); err != nil {
		return fmt.Errorf("the file %s is damaged: %w", PublicFile, err)
	}
	if l.verifier.KeyHash() != l.signer.KeyHash() {
		return problem.New(problem.Conflict, "audit_key_mismatch", "%s and %s are not halves of one key; restore both from where you keep them.", KeyFile, PublicFile)
	}
	return nil
}

func (l *Log) refuseNewKey(ctx context.Context, path string) error {
	return l.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		var size int64
		err := q.QueryRow(ctx, `SELECT COALESCE(SUM(size), 0) FROM audit_log`).Scan(&size)
		if err == nil && size > 0 {
			return problem.New(problem.Conflict, "audit_key_missing",
				"The log has %d entries but the key %s is gone. Restore the file; a new key would hide that the old one was lost.", size, path)
		}
		return err
	})
}

// makeKey writes a new pair: the secret half readable by this user alone.
func (l *Log) makeKey(path string) ([]byte, error) {
	secret, public, err := note.GenerateKey(rand.Reader, "countersign-"+l.instance)
	if err != nil {
		return nil, fmt.Errorf("make the audit key: %w", err)
	}
	if err := writeDurably(filepath.Join(l.dir, PublicFile), []byte(public+"\n"), 0o644); err != nil {
		return nil, err
	}
	return []byte(secret), writeDurably(path, []byte(secret+"\n"), 0o600)
}

// writeDurably replaces a file as a whole, synced with its folder.
func writeDurably(path string, content []byte, mode os.FileMode) (err error) {
	temp := path + ".new"
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// origin is the first line of a tenant's heads.
func (l *Log) origin(tenant string) string {
	if tenant == "" {
		tenant = "instance"
	}
	return fmt.Sprintf("countersign/%s/%s/%d", l.instance, tenant, l.epoch)
}

func (l *Log) headPath() string { return filepath.Join(l.dir, HeadFile) }
