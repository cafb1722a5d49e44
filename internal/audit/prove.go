package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"countersign/internal/audit/receipt"
	"countersign/internal/id"
	"countersign/internal/problem"
	"countersign/internal/store"

	"golang.org/x/mod/sumdb/tlog"
)

// ErrNotYetSealed says that an entry is not under a signed head yet: its
// physical commit is still open.
var ErrNotYetSealed = errors.New("the entry is not under a signed head yet")

const (
	sqlEntry    = `SELECT seq, body FROM audit_entry WHERE tenant = $1 AND id = $2`
	sqlLastHead = `SELECT note FROM audit_head WHERE tenant = $1 ORDER BY size DESC LIMIT 1`
)

// Proof shows that an entry is in the log under a signed head.
type Proof struct {
	Seq  int64    `json:"seq"`
	Body string   `json:"entry"` // the canonical entry, byte for byte
	Path []string `json:"proof"` // hashes, base64
	Head string   `json:"head"`  // the signed note
}

// Proven returns the entry as logged after checking that its bytes are
// included under the last head and that the head is signed by the key file.
// Any doubt is an error; ErrNotYetSealed if there is no head over it yet.
func (l *Log) Proven(ctx context.Context, q store.Querier, tenant string, e id.Entry) (Entry, error) {
	seq, raw, err := find(ctx, q, tenant, e)
	if err != nil {
		return Entry{}, err
	}
	head, _, err := l.head(ctx, q, tenant)
	if err != nil {
		return Entry{}, err
	}
	if seq >= head.Size {
		return Entry{}, ErrNotYetSealed
	}
	path, err := tlog.ProveRecord(head.Size, seq, &nodeReader{ctx: ctx, q: q, tenant: tenant, seen: map[int64]tlog.Hash{}})
	if err != nil {
		return Entry{}, fmt.Errorf("prove entry %s: %w", e, err)
	}
	if err := tlog.CheckRecord(path, head.Size, head.Root, seq, tlog.RecordHash(raw)); err != nil {
		return Entry{}, fmt.Errorf("entry %s is not what the signed log holds at %d", e, seq)
	}
	entry, err := decode(raw)
	if err != nil {
		return Entry{}, err
	}
	if entry.ID != e || entry.Tenant != tenant || entry.Seq != seq {
		return Entry{}, fmt.Errorf("entry %s is stored under another name", e)
	}
	return entry, nil
}

func find(ctx context.Context, q store.Querier, tenant string, e id.Entry) (seq int64, raw []byte, err error) {
	err = q.QueryRow(ctx, sqlEntry, tenant, string(e)).Scan(&seq, &raw)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil, problem.New(problem.NotFound, "not_found", "There is no audit entry %s.", e)
	}
	return seq, raw, err
}

// head returns the last signed head of a tenant, its signature checked with
// the key file.
func (l *Log) head(ctx context.Context, q store.Querier, tenant string) (receipt.Head, string, error) {
	var signed string
	err := q.QueryRow(ctx, sqlLastHead, tenant).Scan(&signed)
	if errors.Is(err, store.ErrNotFound) {
		return receipt.Head{}, "", ErrNotYetSealed
	}
	if err != nil {
		return receipt.Head{}, "", err
	}
	l.mu.Lock()
	known, ok := l.verified[tenant+"\x00"+signed]
	ring := l.ring
	l.mu.Unlock()
	if ok {
		return known, signed, nil
	}
	h, err := receipt.OpenHead(signed, ring.verifiers(ring.current.verifier)...)
	if err != nil && ring.next != nil { // the commit of a rotation is done, its files are not
		h, err = receipt.OpenHead(signed, ring.verifiers(ring.next.verifier)...)
	}
	if err != nil {
		return receipt.Head{}, "", err
	}
	if epoch, ours := l.epochOf(tenant, h.Origin); !ours || epoch > l.epoch {
		return receipt.Head{}, "", fmt.Errorf("the head is of %q, not of %q", h.Origin, l.origin(tenant))
	}
	l.remember(tenant, signed, h)
	return h, signed, nil
}

// headsRemembered bounds the heads whose signature need not be checked again.
const headsRemembered = 64

func (l *Log) remember(tenant, signed string, h receipt.Head) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.verified) >= headsRemembered {
		clear(l.verified)
	}
	l.verified[tenant+"\x00"+signed] = h
}

// Head returns the last signed head of a tenant. ErrNotYetSealed: it has no
// entries.
func (l *Log) Head(ctx context.Context, q store.Querier, tenant string) (receipt.Head, string, error) {
	return l.head(ctx, q, tenant)
}

// Proof returns what shows an outsider that the entry is in the log.
func (l *Log) Proof(ctx context.Context, q store.Querier, tenant string, e id.Entry) (Proof, error) {
	if _, err := l.Proven(ctx, q, tenant, e); err != nil {
		return Proof{}, err
	}
	seq, raw, err := find(ctx, q, tenant, e)
	if err != nil {
		return Proof{}, err
	}
	head, signed, err := l.head(ctx, q, tenant)
	if err != nil {
		return Proof{}, err
	}
	path, err := tlog.ProveRecord(head.Size, seq, &nodeReader{ctx: ctx, q: q, tenant: tenant, seen: map[int64]tlog.Hash{}})
	if err != nil {
		return Proof{}, err
	}
	// One signature, by the key in force: whoever checks needs no other.
	if signed, err = receipt.SignedBy(signed, l.keys().current.verifier); err != nil {
		return Proof{}, err
	}
	p := Proof{Seq: seq, Body: string(raw), Head: signed, Path: []string{}}
	for _, h := range path {
		p.Path = append(p.Path, h.String())
	}
	return p, nil
}

// Payload returns what the entry at seq says a salted digest of; empty when it
// has none or it was erased.
func (l *Log) Payload(ctx context.Context, q store.Querier, tenant string, seq int64) (json.RawMessage, error) {
	var payload []byte
	err := q.QueryRow(ctx, `SELECT payload FROM audit_payload WHERE tenant = $1 AND seq = $2`, tenant, seq).Scan(&payload)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return payload, err
}
