package desk_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
)

// secretive makes the note of a refund sensitive.
func (w *world) secretive() {
	w.t.Helper()
	path := filepath.Join(w.dir, "tools", "shop.refund.yaml")
	text, err := os.ReadFile(path)
	w.must(err)
	text = []byte(strings.NewReplacer("\nversion: 1\n", "\nversion: 2\n", "\neditable:", "\nsensitive: [/note]\neditable:").Replace(string(text)))
	w.must(os.WriteFile(path, text, 0o644))
	_, err = w.inst.LoadDefinitions(w.t.Context())
	w.must(err)
}

func TestApproval_SensitiveValue_IsHiddenWhereverItIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secretive()
	run := w.refund(12_500, engine.WaitingApproval)
	first := w.request("ana", run)
	const secret = "DE89 3704 0044"
	edit := desk.Edit{Digest: first.Digest, Edits: []desk.FieldEdit{{Pointer: "/note", Value: json.RawMessage(`"` + secret + `"`)}}}
	outcome, err := w.desk.CheckEdit(t.Context(), w.principal("ana"), first.ID, edit)
	w.must(err)
	a, err := w.desk.Edit(t.Context(), w.principal("ana"), first.ID, edit)
	w.must(err)
	_, stale := w.decide("ben", "approve", first)
	w.wantProblem(stale, "stale_digest")
	c := caller{t: t, base: w.serve(), token: w.token("ben", true, "approvals:read")}
	for what, shown := range map[string]string{
		"the request": asJSON(t, a), "what the edit comes to": asJSON(t, outcome), "the refusal of a stale page": asJSON(t, w.wantProblem(stale, "stale_digest").Details),
		"the API": c.send("GET", "/api/v1/approvals/"+a.ID, "").raw, "the receipt": c.send("GET", "/api/v1/audit/receipt/"+a.ID, "").raw,
	} {
		if strings.Contains(shown, secret) {
			t.Errorf("%s shows the sensitive note: %s", what, shown)
		}
	}
	if !strings.Contains(asJSON(t, a), `"note":"***"`) || len(a.Changes) == 0 {
		t.Errorf("the request does not say that its note is hidden and changed: %s", asJSON(t, a))
	}
	if _, err := w.desk.Receipt(t.Context(), w.principal("chloe"), a.ID); err != nil {
		t.Errorf("an auditor gets no receipt: %v", err)
	}
}
