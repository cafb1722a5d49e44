package approvals

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"countersign/internal/canon"
	"countersign/internal/problem"
	"countersign/internal/sealed"
)

// ChangesMax bounds a list of changes; the rest is left out.
const ChangesMax = 200

// Change is one leaf that differs. A nil side was not there.
type Change struct {
	Pointer string          `json:"pointer"`
	Old     json.RawMessage `json:"old,omitzero"`
	New     json.RawMessage `json:"new,omitzero"`
}

// bookkeeping differs between any two revisions and tells a person nothing
// that the other changes do not.
var bookkeeping = []string{"/nonce", "/revision", "/supersedes", "/params_hash", "/request_digest"}

// DiffSubjects lists the leaves that differ between two subjects, in the order
// of their pointers, without what differs always; at most ChangesMax.
func DiffSubjects(from, to json.RawMessage) ([]Change, error) {
	all, err := diff(from, to)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(c Change) bool { return slices.Contains(bookkeeping, c.Pointer) })
	return all[:min(len(all), ChangesMax)], nil
}

// diff lists the leaves that differ between two JSON values.
func diff(from, to json.RawMessage) ([]Change, error) {
	a, err := canon.Value(from)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	b, err := canon.Value(to)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	var d differ
	d.walk("", a, true, b, true)
	return d.changes, d.err
}

type differ struct {
	changes []Change
	err     error
}

func (d *differ) walk(pointer string, a any, hasA bool, b any, hasB bool) {
	_, sealedA := sealed.Of(a)
	_, sealedB := sealed.Of(b)
	if hasA && hasB && !sealedA && !sealedB {
		am, aIs := a.(map[string]any)
		bm, bIs := b.(map[string]any)
		if aIs && bIs {
			d.objects(pointer, am, bm)
			return
		}
		as, aIs := a.([]any)
		bs, bIs := b.([]any)
		if aIs && bIs {
			d.lists(pointer, as, bs)
			return
		}
	}
	c := Change{Pointer: pointer, Old: d.bytes(a, hasA), New: d.bytes(b, hasB)}
	if !bytes.Equal(c.Old, c.New) {
		d.changes = append(d.changes, c)
	}
}

func (d *differ) objects(pointer string, a, b map[string]any) {
	keys := make([]string, 0, len(a)+len(b))
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		if _, both := a[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		x, hasA := a[k]
		y, hasB := b[k]
		d.walk(canon.Join(pointer, k), x, hasA, y, hasB)
	}
}

func (d *differ) lists(pointer string, a, b []any) {
	for i := range max(len(a), len(b)) {
		var x, y any
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		d.walk(canon.Join(pointer, strconv.Itoa(i)), x, i < len(a), y, i < len(b))
	}
}

func (d *differ) bytes(v any, has bool) json.RawMessage {
	if !has {
		return nil
	}
	raw, err := canon.Marshal(v)
	if err != nil && d.err == nil {
		d.err = err
	}
	return raw
}

// compareParams returns a fault for every leaf that differs between the two
// parameters and is under none of the editable pointers, and whether anything
// differs at all.
func compareParams(from, to json.RawMessage, editable []string) (faults []problem.Field, changed bool, err error) {
	all, err := diff(from, to)
	for _, c := range all {
		if !under(c.Pointer, editable) {
			faults = append(faults, problem.Field{Pointer: c.Pointer, Message: "may not be changed here; " + allowed(editable)})
		}
	}
	return faults, len(all) > 0, err
}

// under reports whether pointer is one of the others or inside one.
func under(pointer string, others []string) bool {
	for _, o := range others {
		if o != "" && (pointer == o || strings.HasPrefix(pointer, o+"/")) {
			return true
		}
	}
	return false
}

func allowed(editable []string) string {
	if len(editable) == 0 {
		return "nothing may"
	}
	return "only " + strings.Join(editable, ", ") + " may"
}
