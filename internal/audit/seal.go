package audit

import (
	"context"
	"errors"
	"fmt"

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
// tree nodes of the new entries and one signed head per tenant.
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
	tx.AfterCommit(func() { l.copies.changed() })
	return nil
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
	leaves, err := leavesFrom(ctx, tx, u)
	if err != nil {
		return err
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
