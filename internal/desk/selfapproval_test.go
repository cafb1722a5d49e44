package desk_test

import (
	"encoding/json"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"
)

// forSomebody is a refund that the token's holder starts on behalf of onBehalfOf.
func (w *world) forSomebody(token, onBehalfOf string) engine.Run {
	w.t.Helper()
	p, err := w.desk.TokenPrincipal(w.t.Context(), token)
	w.must(err)
	run, _, err := w.desk.StartRun(w.t.Context(), p, desk.StartRun{Workflow: "refund", OnBehalfOf: onBehalfOf,
		Input: json.RawMessage(`{"order_id":"4180","amount":12500,"why":"The parcel arrived damaged."}`)})
	w.must(err)
	return w.waitFor(run, engine.WaitingApproval)
}

func TestDecide_OwnerOfTheToken_IsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.request("ana", w.forSomebody(w.token("ana", false, "runs:write", "runs:read"), ""))
	_, err := w.decide("ana", "approve", a)
	w.wantProblem(err, "self_approval")
}

func TestDecide_WhomTheTokenActsFor_IsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.token("dev", false, "runs:write", "runs:read")
	for _, name := range []string{"ana@example.org", " Ana@Example.org", string(w.principal("ana").Person)} {
		a := w.request("ana", w.forSomebody(token, name))
		if a.Eligible.You {
			t.Errorf("on behalf of %q: the page offers Ana to decide on it", name)
		}
		_, err := w.decide("ana", "approve", a)
		w.wantProblem(err, "self_approval")
	}
}
