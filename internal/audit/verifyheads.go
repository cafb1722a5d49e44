package audit

import (
	"context"
	"errors"
	"maps"
	"slices"

	"countersign/internal/audit/receipt"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// rotation is what an entry says that hands over to a new key.
type rotation struct {
	seq      int64
	old, new string
}

// keys checks that the rotations on record are those of the key files, and
// that the key in force is the last of them.
func (v *verifier) keys() {
	for i, r := range v.rotations {
		if v.ring.named(r.old) == nil || v.ring.named(r.new) == nil || i > 0 && v.rotations[i-1].new != r.old {
			v.found(r.seq, "the log changes from the key %s to %s; %s does not say so", r.old, r.new, PublicFile)
		}
	}
	if n := len(v.rotations); n > 0 && v.rotations[n-1].new != v.ring.current.public {
		v.found(v.rotations[n-1].seq, "the log changes to the key %s, which is not the one in %s", v.rotations[n-1].new, KeyFile)
	}
}

// open verifies a stored head with the key that was in force at its size, and
// with both where one was handed over to the other.
func (v *verifier) open(size int64, signed string) (receipt.Head, error) {
	in := v.ring.current.verifier
	for i := len(v.rotations) - 1; i >= 0 && size <= v.rotations[i].seq; i-- {
		in = v.ring.named(v.rotations[i].old)
	}
	if in == nil {
		return receipt.Head{}, errors.New("the key it needs is not known")
	}
	h, err := receipt.OpenHead(signed, v.ring.verifiers(in)...)
	if err != nil || v.handover(size) == nil {
		return h, err
	}
	return receipt.OpenHead(signed, v.ring.verifiers(v.handover(size))...)
}

// handover returns the old key if the head over size must be signed by it
// too: it is the first over a rotation's entry.
func (v *verifier) handover(size int64) note.Verifier {
	for _, r := range v.rotations {
		if size > r.seq && v.before <= r.seq {
			return v.ring.named(r.old)
		}
	}
	return nil
}

// heads checks every signed head and returns how many there are and the last.
func (v *verifier) heads(ctx context.Context) (n int64, last string, err error) {
	rows, err := v.q.Query(ctx, `SELECT size, note FROM audit_head WHERE tenant = $1 ORDER BY size`, v.tenant)
	if err != nil {
		return 0, "", err
	}
	defer rows.Close()
	covered := int64(0)
	for rows.Next() {
		if err := rows.Scan(&covered, &last); err != nil {
			return 0, "", err
		}
		n++
		h, err := v.open(covered, last)
		switch {
		case err != nil:
			v.found(covered, "head %d: %v", covered, err)
		case h.Size != covered:
			v.found(covered, "the head stored at %d says it is of %d", covered, h.Size)
		default:
			v.head(h, "a signed head")
		}
		v.before = covered
	}
	if covered < v.size {
		v.found(covered, "entries %d to %d are under no signed head", covered, v.size-1)
	}
	return n, last, rows.Err()
}

// head checks one head against the recomputed tree.
func (v *verifier) head(h receipt.Head, which string) {
	epoch, ours := v.log.epochOf(v.tenant, h.Origin)
	if !ours || epoch > v.log.epoch {
		v.found(h.Size, "%s is of the log %q", which, h.Origin)
		return
	}
	if r := v.restoredAfter(epoch); r != nil && h.Size > r.seq {
		v.found(r.seq, "the log was restored from a backup on %s by %s, as entry %d says: %s covers %d entries of the time before, and only %d of them are here",
			r.at.UTC().Format("2006-01-02 15:04:05 MST"), r.by, r.seq, which, h.Size, r.seq)
		return
	}
	if h.Size > v.size {
		v.found(v.size, "%s covers %d entries; only %d are here: the end was cut off", which, h.Size, v.size)
		return
	}
	root, err := tlog.TreeHash(h.Size, v)
	if err != nil || root != h.Root {
		v.found(-1, "%s over the first %d entries does not match them", which, h.Size)
	}
}

// copied checks a head that was kept outside the database.
func (v *verifier) copied(signed string) {
	if signed == "" {
		return
	}
	h, err := v.ring.open(signed)
	if err != nil {
		v.found(-1, "the copied head: %v", err)
		return
	}
	v.head(h, "the copied head")
}

// payloads compares the payloads that were not erased with their digests, and
// finds those that are gone without a record of it.
func (v *verifier) payloads(ctx context.Context) error {
	rows, err := v.q.Query(ctx, `SELECT seq, salt, payload FROM audit_payload WHERE tenant = $1 ORDER BY seq`, v.tenant)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		var salt, payload []byte
		if err := rows.Scan(&seq, &salt, &payload); err != nil {
			return err
		}
		if v.salted[seq] != payloadDigest(salt, payload) {
			v.found(seq, "the payload beside the entry is not the one it was made with")
		}
		delete(v.salted, seq)
	}
	for _, seq := range slices.Sorted(maps.Keys(v.salted)) {
		if !v.erased[v.ids[seq]] {
			v.found(seq, "the payload is gone, and no entry says that it was erased")
		}
	}
	return rows.Err()
}
