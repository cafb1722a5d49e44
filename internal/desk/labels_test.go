package desk_test

import (
	"strings"
	"testing"

	"countersign/internal/engine"
)

// What the page says about undoing is what the tool's definition says.
func TestUndo_IsWhatTheToolDeclares(t *testing.T) {
	for _, c := range []struct {
		declared, says string
		reversible     bool
	}{
		{"", "does not say", false}, {"reversible: true\n", "can be undone", true}, {"reversible: false\n", "cannot be undone", false},
		{"compensate: {tool: shop.cancel_refund, with: {id: \"${result.body.id}\"}}\n", "shop.cancel_refund", true},
	} {
		t.Run(c.says, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.redefine("tools/shop.refund.yaml", "\neditable:", "\n"+c.declared+"editable:")
			_, err := w.inst.LoadDefinitions(t.Context())
			w.must(err)
			a := w.request("ana", w.refund(12_500, engine.WaitingApproval))
			if !strings.Contains(a.Undo, c.says) || a.Reversible != c.reversible {
				t.Errorf("the request says %q, reversible %v", a.Undo, a.Reversible)
			}
		})
	}
}
