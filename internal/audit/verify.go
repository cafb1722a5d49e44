package audit

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"countersign/internal/id"
	"countersign/internal/store"

	"golang.org/x/mod/sumdb/tlog"
)

// Finding is one thing that is wrong with a log.
type Finding struct {
	Tenant string `json:"tenant"`
	Seq    int64  `json:"seq"` // the first entry concerned; -1: the log as a whole
	What   string `json:"what"`
}

// TenantReport is what was found of one tenant's log.
type TenantReport struct {
	Tenant  string `json:"tenant"`
	Entries int64  `json:"entries"`
	Heads   int64  `json:"heads"`
	Head    string `json:"head"`   // the last signed head
	Erased  int64  `json:"erased"` // payloads that were erased, on record
}

// Report is the result of verifying every log.
type Report struct {
	OK       bool           `json:"ok"`
	Tenants  []TenantReport `json:"tenants"`
	Findings []Finding      `json:"findings"`
}

// findingsMax bounds what one report lists; the first is what matters.
const findingsMax = 50

// Verify recomputes every log from its entries and compares it with the
// stored nodes, with every signed head, and with copied, heads kept elsewhere
// (tenant to signed note; nil for none). An error means it could not look.
func (l *Log) Verify(ctx context.Context, copied map[string]string) (Report, error) {
	report := Report{Findings: []Finding{}, Tenants: []TenantReport{}}
	err := l.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		tenants, err := allTenants(ctx, q, copied)
		if err != nil {
			return err
		}
		for _, tenant := range tenants {
			v := &verifier{log: l, q: q, tenant: tenant, report: &report, ring: l.keys(),
				salted: map[int64]string{}, erased: map[id.Entry]bool{}, ids: map[int64]id.Entry{}}
			if err := v.run(ctx, copied[tenant]); err != nil {
				return fmt.Errorf("verify the log of %q: %w", tenant, err)
			}
		}
		return nil
	})
	report.OK = err == nil && len(report.Findings) == 0
	return report, err
}

// allTenants lists every tenant that any table, or a copied head, knows, so
// that a log cannot hide by losing its row.
func allTenants(ctx context.Context, q store.Querier, copied map[string]string) ([]string, error) {
	rows, err := q.Query(ctx, `SELECT tenant FROM audit_log UNION SELECT tenant FROM audit_entry UNION SELECT tenant FROM audit_head
		UNION SELECT tenant FROM audit_node UNION SELECT tenant FROM audit_payload ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	out, err := texts(rows)
	for t := range copied {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out, err
}

// texts reads rows of one text and closes them.
func texts(rows *sql.Rows) (out []string, err error) {
	defer rows.Close()
	for rows.Next() {
		var t string
		if err := rows.Scan(&t); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, rows.Err()
}

// verifier walks one tenant's log.
type verifier struct {
	log    *Log
	q      store.Querier
	tenant string
	report *Report
	size   int64
	hashes []tlog.Hash // by storage index, recomputed

	ring      *keyring
	rotations []rotation
	restores  []restore
	before    int64            // size of the head before the one looked at
	salted    map[int64]string // by seq: the payload digests entries carry
	erased    map[id.Entry]bool
	ids       map[int64]id.Entry // of entries with a payload
}

func (v *verifier) found(seq int64, format string, args ...any) {
	if len(v.report.Findings) < findingsMax {
		v.report.Findings = append(v.report.Findings, Finding{Tenant: v.tenant, Seq: seq, What: fmt.Sprintf(format, args...)})
	}
}

func (v *verifier) run(ctx context.Context, copied string) error {
	if err := v.entries(ctx); err != nil {
		return err
	}
	if err := v.nodes(ctx); err != nil {
		return err
	}
	v.keys()
	heads, last, err := v.heads(ctx)
	if err != nil {
		return err
	}
	if err := v.bounds(ctx); err != nil {
		return err
	}
	if err := v.payloads(ctx); err != nil {
		return err
	}
	v.copied(copied)
	v.report.Tenants = append(v.report.Tenants, TenantReport{Tenant: v.tenant, Entries: v.size, Heads: heads, Head: last, Erased: int64(len(v.erased))})
	return nil
}

// ReadHashes implements tlog.HashReader over the recomputed tree.
func (v *verifier) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, idx := range indexes {
		if idx < 0 || idx >= int64(len(v.hashes)) {
			return nil, fmt.Errorf("the tree has no node %d", idx)
		}
		out[i] = v.hashes[idx]
	}
	return out, nil
}

// entries recomputes the tree from the bodies.
func (v *verifier) entries(ctx context.Context) error {
	rows, err := v.q.Query(ctx, `SELECT seq, id, body, leaf, at, actor, action, subject, run FROM audit_entry WHERE tenant = $1 ORDER BY seq`, v.tenant)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		var id string
		var body, leaf []byte
		var by copies
		if err := rows.Scan(&seq, &id, &body, &leaf, &by.at, &by.actor, &by.action, &by.subject, &by.run); err != nil {
			return err
		}
		if seq != v.size {
			v.found(v.size, "entries %d to %d are missing", v.size, seq-1)
			return nil // what follows cannot fit
		}
		v.entry(seq, id, body, leaf, by)
		hashes, err := tlog.StoredHashesForRecordHash(seq, tlog.RecordHash(body), v)
		if err != nil {
			return err
		}
		v.hashes = append(v.hashes, hashes...)
		v.size++
	}
	return rows.Err()
}

// copies are the columns an entry is found by. The body is what counts, but a
// changed copy would hide the entry from whoever looks for it.
type copies struct {
	at                          int64
	actor, action, subject, run string
}

// entry checks one row against its own body.
func (v *verifier) entry(seq int64, id string, body, leaf []byte, by copies) {
	h := tlog.RecordHash(body)
	if !bytes.Equal(leaf, h[:]) {
		v.found(seq, "the entry's bytes are not those its leaf was made of")
	}
	e, err := decode(body)
	if err != nil {
		v.found(seq, "%v", err)
		return
	}
	if again, err := e.encode(); err != nil || !bytes.Equal(again, body) {
		v.found(seq, "the entry is not in canonical form")
	}
	if e.Seq != seq || e.Tenant != v.tenant || string(e.ID) != id {
		v.found(seq, "the entry is stored in a place that is not its own")
	}
	v.note(e)
	if want := (copies{store.Micros(e.Time), e.Actor.ID, e.Action, e.Subject, string(e.Run)}); by != want {
		v.found(seq, "the columns the entry is found by are not what it says")
	}
}

// note keeps what later checks need of an entry.
func (v *verifier) note(e Entry) {
	switch e.Action {
	case rotatedAction:
		v.rotations = append(v.rotations, rotation{e.Seq, e.Authority["old_key"], e.Authority["new_key"]})
	case RestoredAction:
		v.restores = append(v.restores, restoreIn(e))
	case erasedAction:
		v.erased[id.Entry(e.Subject)] = true
	}
	if e.PayloadDigest != "" {
		v.salted[e.Seq], v.ids[e.Seq] = e.PayloadDigest, e.ID
	}
}

// bounds checks the row that says how long the log is.
func (v *verifier) bounds(ctx context.Context) error {
	var size, sealed int64
	err := v.q.QueryRow(ctx, sqlBounds, v.tenant).Scan(&size, &sealed)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if size != v.size || sealed != v.size {
		v.found(v.size, "the log is said to have %d entries, %d of them signed; there are %d", size, sealed, v.size)
	}
	return nil
}

// nodes compares the stored tree with the recomputed one.
func (v *verifier) nodes(ctx context.Context) error {
	rows, err := v.q.Query(ctx, `SELECT idx, hash FROM audit_node WHERE tenant = $1 ORDER BY idx`, v.tenant)
	if err != nil {
		return err
	}
	defer rows.Close()
	next := int64(0)
	for rows.Next() {
		var idx int64
		var raw []byte
		if err := rows.Scan(&idx, &raw); err != nil {
			return err
		}
		if idx != next || idx >= int64(len(v.hashes)) || !bytes.Equal(raw, v.hashes[idx][:]) {
			v.found(-1, "the stored tree differs from the entries at node %d", idx)
			return nil
		}
		next++
	}
	if next != int64(len(v.hashes)) {
		v.found(-1, "the stored tree has %d nodes; the entries give %d", next, len(v.hashes))
	}
	return rows.Err()
}

// VerifyFolder verifies against the heads copied beside the database too.
func (l *Log) VerifyFolder(ctx context.Context) (Report, error) {
	heads, err := ReadHeadFile(l.headPath())
	if err != nil {
		return Report{}, errors.Join(fmt.Errorf("read %s", HeadFile), err)
	}
	return l.Verify(ctx, heads)
}
