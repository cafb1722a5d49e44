package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"countersign/internal/approvals"
	"countersign/internal/canon"
	"countersign/internal/identity"
	"countersign/internal/schema"
	"countersign/internal/sealed"
	"countersign/internal/store"
	"countersign/internal/tools"
)

// Label says how one leaf of a document is read.
type Label struct {
	Pointer     string
	Title, Hint string // of the schema; may be empty
	Currency    string // of a whole number that counts its smallest unit: "EUR"; else empty
}

// fillLabels adds how the tool's schemas name what is asked and measured. A
// request without a tool, or whose tool is gone, has no labels.
func (d *Desk) fillLabels(ctx context.Context, q store.Querier, r approvals.Request, _ identity.Principal, out *Approval) error {
	if r.Kind == approvals.KindDocument {
		out.Impact, out.Reversible = d.leadsTo(ctx, q, r), true
		return nil
	}
	if r.ToolDigest == "" {
		return nil
	}
	t, err := d.defs.Tool(ctx, q, Tenant, r.ToolDigest)
	if err != nil {
		return nil // the page is complete without, and says elsewhere that the tool is gone
	}
	out.ParamLabels, out.PreviewLabels = labels(t.Params(), out.Params), labels(t.PreviewSchema(), out.Preview)
	out.Undo, out.Reversible = undo(t)
	return nil
}

// leadsTo says what follows from the approval of a document: nothing by
// itself, and what of it the workflow makes depend on it.
func (d *Desk) leadsTo(ctx context.Context, q store.Querier, r approvals.Request) string {
	const alone = "Approving it sends nothing; the run goes on. What it does next is asked for by itself, where the policy says so."
	w, err := d.defs.Workflow(ctx, q, Tenant, r.Plan.WorkflowDigest)
	if err != nil {
		return alone // the page is complete without
	}
	var guarded []string
	for _, step := range w.Steps() {
		if step.Path == r.Path {
			guarded = step.Guards
		}
	}
	var depend []string
	for _, step := range w.Steps() {
		if slices.Contains(guarded, step.Path) {
			depend = append(depend, fmt.Sprintf("%s (%s)", cmp.Or(step.Title, step.Path), step.Tool))
		}
	}
	if len(depend) == 0 {
		return alone
	}
	return alone + " Without it these are never reached: " + strings.Join(depend, ", ") + "."
}

// undo says whether what a tool does can be undone, as its definition declares.
func undo(t *tools.Tool) (words string, reversible bool) {
	c, corrects := t.Compensation()
	switch {
	case corrects:
		return "It can be corrected with " + c.Tool + ", as a new action that somebody approves.", true
	case t.Reversible == nil:
		return "Countersign cannot undo it, and the tool does not say whether anybody can.", false
	case *t.Reversible:
		return "The tool says that it can be undone, outside of Countersign.", true
	}
	return "It cannot be undone.", false
}

// labels lists the leaves of a document in the order of its schema. What the
// schema does not declare follows, by name, without words.
func labels(s *schema.Schema, raw json.RawMessage) []Label {
	doc, err := canon.Value(raw)
	if s == nil || len(raw) == 0 || err != nil {
		return nil
	}
	l := labeller{schema: s, doc: doc}
	l.walk("", doc)
	return l.found
}

type labeller struct {
	schema *schema.Schema
	doc    any
	found  []Label
}

func (l *labeller) walk(pointer string, v any) {
	if _, ok := sealed.Of(v); ok {
		l.leaf(pointer)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		var names []string
		for _, f := range l.schema.Fields(pointer) {
			if _, there := v[f.Name]; there {
				names = append(names, f.Name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		for _, name := range names {
			l.walk(canon.Join(pointer, name), v[name])
		}
	case []any:
		for i, x := range v {
			l.walk(canon.Join(pointer, fmt.Sprint(i)), x)
		}
	default:
		l.leaf(pointer)
	}
}

func (l *labeller) leaf(pointer string) {
	f, _ := l.schema.Field(pointer)
	l.found = append(l.found, Label{Pointer: pointer, Title: f.Title, Hint: f.Description, Currency: l.currency(f.Money)})
}

// currency is what x-money names: a code, or the pointer of one.
func (l *labeller) currency(money string) string {
	if money == "" || money[0] != '/' {
		return money
	}
	v, _ := canon.Get(l.doc, money)
	code, _ := v.(string)
	return code
}
