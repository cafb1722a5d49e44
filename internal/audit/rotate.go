package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"countersign/internal/audit/receipt"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// rotatedAction is the entry that hands a log over to a new key. The head
// over it is signed by both.
const rotatedAction = "audit.key_rotated"

// Rotate replaces the signing key: each log gets an entry that names both
// keys, under a head that both sign, in one transaction; from then on only
// the new key counts. Former public keys stay in PublicFile. It returns the
// new public key. Another process that has the log open can no longer append
// until it is started again, so hold the folder's lock.
//
// A crash at any instant leaves one of the two keys in force: the new one lies
// beside the old until the commit is known, and the next Open finishes or
// drops the rotation.
func (l *Log) Rotate(ctx context.Context, by Actor, channel string) (string, error) {
	if l.keys().next != nil {
		return "", problem.New(problem.Conflict, "rotation_under_way", "The audit key is being replaced already.")
	}
	next, secret, err := newKey("countersign-" + l.instance)
	if err != nil {
		return "", err
	}
	if err := writeDurably(l.nextKeyPath(), []byte(secret+"\n"), 0o600); err != nil {
		return "", err
	}
	l.turnTo(&next)
	failed := l.db.Update(ctx, func(ctx context.Context, tx *store.Tx) error { return l.handOver(ctx, tx, next, by, channel) })
	done, err := l.settleRotation(ctx)
	if err != nil {
		return "", errors.Join(failed, err)
	}
	if !done {
		return "", fmt.Errorf("replace the audit key: %w", failed)
	}
	return l.Public(), nil
}

// turnTo makes next the key that a rotation entry hands over to.
func (l *Log) turnTo(next *key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ring := *l.ring
	ring.next = next
	l.ring = &ring
}

// handOver appends the rotation's entry to every log.
func (l *Log) handOver(ctx context.Context, tx *store.Tx, next key, by Actor, channel string) error {
	rows, err := tx.Query(ctx, `SELECT tenant FROM audit_log WHERE size > 0 ORDER BY tenant`)
	if err != nil {
		return err
	}
	tenants, err := texts(rows)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		_, err := l.Append(ctx, tx, Entry{Tenant: tenant, Actor: by, Channel: channel, Action: rotatedAction, Outcome: "ok",
			Authority: map[string]string{"old_key": l.Public(), "new_key": next.public}})
		if err != nil {
			return err
		}
	}
	return nil
}

// resumeRotation finishes a rotation that a crash left behind. One that did
// not commit is left alone: it may be another process's, and the next
// rotation writes over it.
func (l *Log) resumeRotation(ctx context.Context) error {
	next, err := l.nextKey()
	if err != nil || next == nil {
		return err
	}
	l.turnTo(next)
	_, err = l.settleRotation(ctx)
	return err
}

// nextKey reads the key of a rotation that is not finished; nil for none.
func (l *Log) nextKey() (*key, error) {
	secret, err := os.ReadFile(l.nextKeyPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the next audit key: %w", err)
	}
	next, err := readKey(strings.TrimSpace(string(secret)))
	if err != nil {
		return nil, nil // half written: nothing was signed with it
	}
	return &next, nil
}

// finishRename is the last step of a rotation, when a crash came before it:
// PublicFile names the next key first already.
func (l *Log) finishRename() error {
	next, err := l.nextKey()
	if err != nil || next == nil {
		return err
	}
	public, err := os.ReadFile(filepath.Join(l.dir, PublicFile))
	if err != nil || !strings.HasPrefix(string(public), next.public+"\n") {
		return nil // loading the keys says what is wrong, if anything is
	}
	return renameDurably(l.nextKeyPath(), filepath.Join(l.dir, KeyFile))
}

// settleRotation asks the log whether the next key is in force, and brings
// files and memory to the same answer.
func (l *Log) settleRotation(ctx context.Context) (done bool, err error) {
	next := l.keys().next
	err = l.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		done, err = l.handedOver(ctx, q, *next)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("ask whether the audit key was replaced: %w", err)
	}
	ring := *l.keys()
	ring.next = nil
	if !done {
		l.use(&ring)
		return false, nil
	}
	ring.former = append([]key{{public: ring.current.public, verifier: ring.current.verifier}}, ring.former...)
	ring.current = *next
	l.use(&ring)
	if err := writeDurably(filepath.Join(l.dir, PublicFile), []byte(ring.lines()), 0o644); err != nil {
		return true, err
	}
	return true, l.finishRename()
}

func (l *Log) use(ring *keyring) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring = ring
	clear(l.verified)
}

// handedOver reports whether the instance's last head is signed by k. Each
// rotation makes one, and heads after it are signed by k alone.
func (l *Log) handedOver(ctx context.Context, q store.Querier, k key) (bool, error) {
	var signed string
	err := q.QueryRow(ctx, sqlLastHead, instanceTenant).Scan(&signed)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = receipt.OpenHead(signed, l.keys().verifiers(k.verifier)...)
	return err == nil, nil
}

func (l *Log) nextKeyPath() string { return filepath.Join(l.dir, nextKeyFile) }
