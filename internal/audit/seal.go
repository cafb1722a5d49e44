package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"countersign/internal/audit/receipt"
	"countersign/internal/store"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// ErrBroken says that a log was changed by somebody else, so that nothing is
// appended to it any more: a signature over it would vouch for the change.
// Verify says what was changed.
var ErrBroken = errors.New("the audit log is not as this program left it")

const (
	sqlBounds = `SELECT size, sealed FROM audit_log WHERE tenant = $1`
	sqlNode   = `INSERT INTO audit_node (tenant, idx, hash) VALUES ($1, $2, $3)`
	sqlHead   = `INSERT INTO audit_head (tenant, size, note) VALUES ($1, $2, $3)`
	sqlSealed = `UPDATE audit_log SET sealed = $2 WHERE tenant = $1 AND sealed = $3 AND size = $2`
	sqlHash   = `SELECT hash FROM audit_node WHERE tenant = $1 AND idx = $2`
)

// seal runs once in each physical commit, after its transactions: it adds the
// tree nodes of the new entries and one signed head per tenant.
//
// The key must not sign what this program did not write. So only leaves that
// Append remembers are sealed, and only on top of a tree that still has the
// root of the last head, signed by the key file. Otherwise ErrBroken, and
// nothing of the commit happens.
func (l *Log) seal(ctx context.Context, tx *store.Tx) error {
	work := l.takePending()
	sealed := map[string]int64{}
	for _, tenant := range slices.Sorted(maps.Keys(work)) {
		size, err := l.sealTenant(ctx, tx, tenant, work[tenant])
		if err != nil {
			return fmt.Errorf("seal the audit log of %q: %w", tenant, err)
		}
		sealed[tenant] = size
	}
	if len(sealed) > 0 {
		tx.AfterCommit(func() { l.committed(sealed) })
	}
	return nil
}

func (l *Log) takePending() map[string]map[int64]written {
	l.mu.Lock()
	defer l.mu.Unlock()
	work := l.pending
	if len(work) > 0 {
		l.pending = map[string]map[int64]written{}
	}
	return work
}

func (l *Log) committed(sealed map[string]int64) {
	l.mu.Lock()
	for tenant, size := range sealed {
		l.reached[tenant] = max(l.reached[tenant], size)
	}
	l.mu.Unlock()
	l.copies.changed()
}

func (l *Log) sealTenant(ctx context.Context, tx *store.Tx, tenant string, fresh map[int64]written) (size int64, err error) {
	var sealed int64
	if err := tx.QueryRow(ctx, sqlBounds, tenant).Scan(&size, &sealed); err != nil || size == sealed {
		if errors.Is(err, store.ErrNotFound) { // the first entry rolled back, and the log's row with it
			err = nil
		}
		return size, err
	}
	nodes := &nodeReader{ctx: ctx, q: tx, tenant: tenant, seen: map[int64]tlog.Hash{}}
	if err := l.checkPrior(ctx, tx, nodes, sealed); err != nil {
		return 0, err
	}
	rotation := false
	for seq := sealed; seq < size; seq++ {
		w, mine := fresh[seq]
		if !mine {
			return 0, fmt.Errorf("%w: entry %d was not written by it", ErrBroken, seq)
		}
		rotation = rotation || w.rotation
		if err := addLeaf(ctx, tx, nodes, seq, w.leaf); err != nil {
			return 0, err
		}
	}
	root, err := tlog.TreeHash(size, nodes)
	if err != nil {
		return 0, err
	}
	signers, err := l.signers(ctx, tx, rotation)
	if err != nil {
		return 0, err
	}
	return size, l.addHead(ctx, tx, tenant, receipt.Head{Origin: l.origin(tenant), Size: size, Root: root}, sealed, signers)
}

// checkPrior checks that the tree up to sealed is the one last signed.
func (l *Log) checkPrior(ctx context.Context, tx *store.Tx, nodes *nodeReader, sealed int64) error {
	l.mu.Lock()
	reached := l.reached[nodes.tenant]
	l.mu.Unlock()
	if sealed < reached {
		return fmt.Errorf("%w: it had %d entries and now has %d", ErrBroken, reached, sealed)
	}
	h, _, err := l.head(ctx, tx, nodes.tenant)
	if errors.Is(err, ErrNotYetSealed) && sealed == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if h.Size != sealed {
		return fmt.Errorf("%w: %d entries are said to be signed; the last head is over %d", ErrBroken, sealed, h.Size)
	}
	if root, err := tlog.TreeHash(h.Size, nodes); err != nil || root != h.Root {
		return fmt.Errorf("%w: its tree does not have the root that was signed (%v)", ErrBroken, err)
	}
	return nil
}

// signers returns who signs the next head: during a rotation, both keys sign
// the head over its entry, and the new key alone every later one.
func (l *Log) signers(ctx context.Context, tx *store.Tx, rotation bool) ([]note.Signer, error) {
	ring := l.keys()
	if ring.next == nil {
		return []note.Signer{ring.current.signer}, nil
	}
	if rotation {
		return []note.Signer{ring.current.signer, ring.next.signer}, nil
	}
	over, err := l.handedOver(ctx, tx, *ring.next)
	if over {
		return []note.Signer{ring.next.signer}, err
	}
	return []note.Signer{ring.current.signer}, err
}

func (l *Log) addHead(ctx context.Context, tx *store.Tx, tenant string, h receipt.Head, sealed int64, signers []note.Signer) error {
	signed, err := h.Sign(signers...)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlHead, tenant, h.Size, signed); err != nil {
		return err
	}
	l.remember(tenant, signed, h)
	return tx.ExecOne(ctx, sqlSealed, tenant, h.Size, sealed)
}

func addLeaf(ctx context.Context, tx *store.Tx, nodes *nodeReader, seq int64, leaf tlog.Hash) error {
	hashes, err := tlog.StoredHashesForRecordHash(seq, leaf, nodes)
	if err != nil {
		return err
	}
	first := tlog.StoredHashIndex(0, seq)
	for i, h := range hashes {
		nodes.seen[first+int64(i)] = h
		if _, err := tx.Exec(ctx, sqlNode, nodes.tenant, first+int64(i), h[:]); err != nil {
			return err
		}
	}
	return nil
}

func hash(raw []byte) (h tlog.Hash, err error) {
	if len(raw) != tlog.HashSize {
		return h, fmt.Errorf("a hash of the log has %d bytes, not %d", len(raw), tlog.HashSize)
	}
	copy(h[:], raw)
	return h, nil
}

// nodeReader reads stored tree hashes, each once.
type nodeReader struct {
	ctx    context.Context
	q      store.Querier
	tenant string
	seen   map[int64]tlog.Hash
}

// ReadHashes implements tlog.HashReader.
func (r *nodeReader) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, idx := range indexes {
		if h, ok := r.seen[idx]; ok {
			out[i] = h
			continue
		}
		var raw []byte
		err := r.q.QueryRow(r.ctx, sqlHash, r.tenant, idx).Scan(&raw)
		if errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("the tree lacks its node %d", idx)
		}
		if err != nil {
			return nil, err
		}
		if out[i], err = hash(raw); err != nil {
			return nil, err
		}
		r.seen[idx] = out[i]
	}
	return out, nil
}
