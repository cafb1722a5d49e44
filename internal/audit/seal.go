package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"countersign/internal/audit/receipt"
	"countersign/internal/store"

	"golang.org/x/mod/sumdb/tlog"
)

const (
	sqlUnsealed = `SELECT tenant, size, sealed FROM audit_log WHERE size > sealed ORDER BY tenant`
	sqlLeaves   = `SELECT leaf FROM audit_entry WHERE tenant = $1 AND seq >= $2 ORDER BY seq`
	sqlNode     = `INSERT INTO audit_node (tenant, idx, hash) VALUES ($1, $2, $3)`
	sqlHead     = `INSERT INTO audit_head (tenant, size, note) VALUES ($1, $2, $3)`
	sqlSealed   = `UPDATE audit_log SET sealed = $2 WHERE tenant = $1 AND sealed = $3 AND size = $2`
	sqlHash     = `SELECT hash FROM audit_node WHERE tenant = $1 AND idx = $2`
)

type unsealed struct {
	tenant       string
	size, sealed int64
}

// seal runs once in each physical commit, after its transactions: it adds the
// tree nodes of the new entries and one signed head per tenant. It signs only
// entries that this process appended, and only on top of the tree that the
// last head is of: whoever can write the database cannot have a past of their
// own signed.
func (l *Log) seal(ctx context.Context, tx *store.Tx) error {
	if !l.dirty.Load() {
		return nil
	}
	todo, err := grown(ctx, tx)
	if err != nil {
		return err
	}
	for _, u := range todo {
		if err := l.sealTenant(ctx, tx, u); err != nil {
			return fmt.Errorf("seal the audit log: %w", err)
		}
	}
	l.mu.Lock()
	clear(l.own)
	l.mu.Unlock()
	tx.AfterCommit(func() { l.copies.changed() })
	return nil
}

// remember notes the leaf of an entry that this process appended.
func (l *Log) remember(leaf tlog.Hash) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.own[leaf] = true
}

// foreign returns the place of the first leaf that this process did not
// append, or -1.
func (l *Log) foreign(leaves []tlog.Hash) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.IndexFunc(leaves, func(leaf tlog.Hash) bool { return !l.own[leaf] })
}

// unbroken refuses a stored tree that is not the one the last head signed.
func (l *Log) unbroken(ctx context.Context, tx *store.Tx, u unsealed, nodes *nodeReader) error {
	head, _, err := l.head(ctx, tx, u.tenant)
	if errors.Is(err, ErrNotYetSealed) && u.sealed == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if head.Size != u.sealed {
		return fmt.Errorf("the last head is over %d entries, but %d were sealed", head.Size, u.sealed)
	}
	root, err := tlog.TreeHash(u.sealed, nodes)
	if err == nil && root != head.Root {
		err = fmt.Errorf("the stored tree of %d entries is not the one that was signed", u.sealed)
	}
	return err
}

func grown(ctx context.Context, tx *store.Tx) (todo []unsealed, err error) {
	rows, err := tx.Query(ctx, sqlUnsealed)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var u unsealed
		if err := rows.Scan(&u.tenant, &u.size, &u.sealed); err != nil {
			return nil, err
		}
		todo = append(todo, u)
	}
	return todo, rows.Err()
}

func (l *Log) sealTenant(ctx context.Context, tx *store.Tx, u unsealed) error {
	nodes := &nodeReader{ctx: ctx, q: tx, tenant: u.tenant, fresh: map[int64]tlog.Hash{}}
	if err := l.unbroken(ctx, tx, u, nodes); err != nil {
		return err
	}
	leaves, err := leavesFrom(ctx, tx, u)
	if err != nil {
		return err
	}
	if i := l.foreign(leaves); i >= 0 {
		return fmt.Errorf("entry %d was not written by this program", u.sealed+int64(i))
	}
	for i, leaf := range leaves {
		if err := addLeaf(ctx, tx, nodes, u.sealed+int64(i), leaf); err != nil {
			return err
		}
	}
	root, err := tlog.TreeHash(u.size, nodes)
	if err != nil {
		return err
	}
	signed, err := receipt.Head{Origin: l.origin(u.tenant), Size: u.size, Root: root}.Sign(l.signer)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlHead, u.tenant, u.size, signed); err != nil {
		return err
	}
	return tx.ExecOne(ctx, sqlSealed, u.tenant, u.size, u.sealed)
}

func leavesFrom(ctx context.Context, tx *store.Tx, u unsealed) ([]tlog.Hash, error) {
	rows, err := tx.Query(ctx, sqlLeaves, u.tenant, u.sealed)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var leaves []tlog.Hash
	for rows.Next() {
		var raw []byte
		if err := rows.Scan(&raw); err != nil {
			return nil, err
		}
		h, err := hash(raw)
		if err != nil {
			return nil, err
		}
		leaves = append(leaves, h)
	}
	if int64(len(leaves)) != u.size-u.sealed {
		return nil, fmt.Errorf("%d entries are new but %d are there", u.size-u.sealed, len(leaves))
	}
	return leaves, rows.Err()
}

func addLeaf(ctx context.Context, tx *store.Tx, nodes *nodeReader, seq int64, leaf tlog.Hash) error {
	hashes, err := tlog.StoredHashesForRecordHash(seq, leaf, nodes)
	if err != nil {
		return err
	}
	first := tlog.StoredHashIndex(0, seq)
	for i, h := range hashes {
		nodes.fresh[first+int64(i)] = h
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

// nodeReader reads stored tree hashes; fresh holds those of this commit.
type nodeReader struct {
	ctx    context.Context
	q      store.Querier
	tenant string
	fresh  map[int64]tlog.Hash
}

// ReadHashes implements tlog.HashReader.
func (r *nodeReader) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, idx := range indexes {
		if h, ok := r.fresh[idx]; ok {
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
	}
	return out, nil
}
