// Package audit is the append-only log of what was asked, decided and done: a
// Merkle tree per tenant whose signed heads let anybody notice a past that was
// edited.
//
// It guarantees that an entry commits with what it records or not at all,
// that entries have no gaps and one order, that tree nodes and one signed head
// per tenant are in the same physical commit, and that proofs are checked with
// a key that is not in the database. It must not know what the entries mean.
package audit

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"countersign/internal/canon"
	"countersign/internal/id"
	"countersign/internal/store"

	"golang.org/x/mod/sumdb/tlog"
)

// entryType is the format of an entry's body.
const entryType = "countersign.entry/1"

// saltBytes makes the digest of a low-entropy payload unguessable once the
// salt is erased with it.
const saltBytes = 16

// Actor is who did something and how they proved who they are.
type Actor struct {
	Kind string `json:"kind"` // person, machine, policy, engine, system
	ID   string `json:"id"`
	Name string `json:"name"`
	How  string `json:"how"` // password, token, …
}

// Entry is one record. ID, Seq, Time and PayloadDigest are set by Append.
type Entry struct {
	ID            id.Entry          `json:"id"`
	Tenant        string            `json:"tenant"`
	Seq           int64             `json:"seq"`
	Time          time.Time         `json:"time"`
	Actor         Actor             `json:"actor"`
	Authority     map[string]string `json:"authority"` // role, group, rule, policy version
	Channel       string            `json:"channel"`
	Action        string            `json:"action"`
	Subject       string            `json:"subject"` // id of what it is about
	Run           id.Run            `json:"run"`
	Digest        string            `json:"digest"`
	Outcome       string            `json:"outcome"`
	PayloadDigest string            `json:"payload_digest"` // salted; empty without payload

	// Payload is kept beside the log with its salt, and can be erased.
	Payload json.RawMessage `json:"-"`
}

// body is the canonical form of an entry: what the leaf is over.
type body struct {
	Type string `json:"type"`
	Entry
}

func (e Entry) encode() ([]byte, error) {
	if e.Authority == nil {
		e.Authority = map[string]string{}
	}
	return canon.Marshal(body{entryType, e})
}

func decode(raw []byte) (Entry, error) {
	var b body
	if err := json.Unmarshal(raw, &b); err != nil {
		return Entry{}, fmt.Errorf("read entry: %w", err)
	}
	if b.Type != entryType {
		return Entry{}, fmt.Errorf("entry has the format %q; this program reads %s", b.Type, entryType)
	}
	return b.Entry, nil
}

// payloadDigest is the salted digest an entry carries.
func payloadDigest(salt, payload []byte) string {
	return canon.Digest(append(append([]byte(nil), salt...), payload...))
}

const (
	sqlNewLog = `INSERT INTO audit_log (tenant, size, sealed) VALUES ($1, 0, 0) ON CONFLICT (tenant) DO NOTHING`
	sqlSize   = `SELECT size FROM audit_log WHERE tenant = $1`
	sqlGrow   = `UPDATE audit_log SET size = size + 1 WHERE tenant = $1 AND size = $2`
	sqlInsert = `INSERT INTO audit_entry (tenant, seq, id, body, leaf, at, actor, action, subject, run) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	sqlKeep   = `INSERT INTO audit_payload (tenant, seq, salt, payload) VALUES ($1, $2, $3, $4)`
)

// Limits of an entry.
const (
	payloadBytesMax   = 1 << 20
	textBytesMax      = 4096
	authorityCountMax = 32
)

// tenantForm keeps tenants apart in the first lines of their heads.
var tenantForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// fit checks what a caller may get wrong and cuts what an outsider may have
// made too long.
func (e *Entry) fit() error {
	if e.Tenant != instanceTenant && (!tenantForm.MatchString(e.Tenant) || e.Tenant == "instance") {
		return fmt.Errorf("%q is not a tenant", e.Tenant)
	}
	if len(e.Payload) > payloadBytesMax {
		return fmt.Errorf("the payload has %d bytes; at most %d are kept", len(e.Payload), payloadBytesMax)
	}
	if len(e.Authority) > authorityCountMax {
		return fmt.Errorf("the authority has %d parts; at most %d are kept", len(e.Authority), authorityCountMax)
	}
	for _, s := range []*string{&e.Actor.Kind, &e.Actor.ID, &e.Actor.Name, &e.Actor.How, &e.Channel, &e.Action, &e.Subject, &e.Digest, &e.Outcome} {
		*s = clipped(*s)
	}
	authority := make(map[string]string, len(e.Authority))
	for k, v := range e.Authority {
		authority[clipped(k)] = clipped(v)
	}
	e.Authority = authority
	return nil
}

// clipped is s as valid Unicode of at most textBytesMax bytes.
func clipped(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= textBytesMax {
		return s
	}
	return strings.ToValidUTF8(s[:textBytesMax-len("…")], "") + "…"
}

// Append adds the entry to its tenant's log in tx and marks tx as audited.
// The entry is under a signed head once the transaction's physical commit is
// done.
//
// Limits: a payload of a mebibyte, 4096 bytes for every other text. Longer
// texts are cut with a mark rather than refused, so that hostile input cannot
// keep a record from being made; a longer payload is an error of the caller.
func (l *Log) Append(ctx context.Context, tx *store.Tx, e Entry) (id.Entry, error) {
	if err := e.fit(); err != nil {
		return "", fmt.Errorf("append audit entry: %w", err)
	}
	seq, err := nextSeq(ctx, tx, e.Tenant)
	if err != nil {
		return "", fmt.Errorf("append audit entry: %w", err)
	}
	e.ID, e.Seq, e.Time = id.NewEntry(tx.Now()), seq, tx.Now()
	var salt []byte
	if len(e.Payload) > 0 {
		salt = make([]byte, saltBytes)
		if _, err := rand.Read(salt); err != nil {
			return "", fmt.Errorf("salt audit payload: %w", err)
		}
		e.PayloadDigest = payloadDigest(salt, e.Payload)
	}
	leaf, err := insert(ctx, tx, e, salt)
	if err != nil {
		return "", fmt.Errorf("append audit entry: %w", err)
	}
	l.wrote(e, leaf)
	tx.Audited()
	return e.ID, nil
}

// wrote remembers the leaf until the commit seals it: nothing else is ever
// signed. One of a transaction that rolled back is replaced by whatever takes
// its place, or lies past the end.
func (l *Log) wrote(e Entry, leaf tlog.Hash) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending[e.Tenant] == nil {
		l.pending[e.Tenant] = map[int64]written{}
	}
	l.pending[e.Tenant][e.Seq] = written{leaf, e.Action == rotatedAction}
}

// nextSeq takes the next place in the log by compare-and-swap.
func nextSeq(ctx context.Context, tx *store.Tx, tenant string) (int64, error) {
	var size int64
	err := tx.QueryRow(ctx, sqlSize, tenant).Scan(&size)
	if errors.Is(err, store.ErrNotFound) {
		_, err = tx.Exec(ctx, sqlNewLog, tenant)
	}
	if err != nil {
		return 0, err
	}
	return size, tx.ExecOne(ctx, sqlGrow, tenant, size)
}

func insert(ctx context.Context, tx *store.Tx, e Entry, salt []byte) (leaf tlog.Hash, err error) {
	raw, err := e.encode()
	if err != nil {
		return leaf, err
	}
	leaf = tlog.RecordHash(raw)
	_, err = tx.Exec(ctx, sqlInsert, e.Tenant, e.Seq, string(e.ID), string(raw), leaf[:], store.Micros(e.Time), e.Actor.ID, e.Action, e.Subject, string(e.Run))
	if err != nil || salt == nil {
		return leaf, err
	}
	_, err = tx.Exec(ctx, sqlKeep, e.Tenant, e.Seq, salt, string(e.Payload))
	return leaf, err
}
