package tools_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/netip"
	"os"
	"testing"
	"time"

	"countersign/internal/demo/standin"
	"countersign/internal/tools"
)

// The sample refund tool against the sample shop, whose ledger is the oracle:
// whatever the shop does with the answer, asking finds out what happened.
func TestExample_TheRefundToolKnowsWhatTheShopDid(t *testing.T) {
	src, err := os.ReadFile("../../examples/tools/shop.refund.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tool, err := tools.Compile("shop.refund.yaml", src)
	if err != nil {
		t.Fatal(err)
	}
	for fault, want := range map[string]struct {
		sent    tools.Status
		effects int
	}{
		"": {tools.Confirmed, 1}, "busy": {tools.NotDone, 0}, "lose_answer": {tools.Unknown, 1}, "error_after": {tools.Unknown, 1},
	} {
		ledger, err := standin.OpenLedger(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		shop := standin.NewServer(ledger, "secret")
		srv := httptest.NewServer(shop.Handler())
		defer srv.Close()
		if fault != "" {
			shop.Break("refund", fault)
		}
		w := &tools.World{
			Allow:   []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
			Secrets: func(context.Context, string) (string, error) { return "secret", nil },
		}
		cfg := tools.Config{"shop": srv.URL + "/shop"}
		params, err := tool.PrepareParams(json.RawMessage(`{"order_id":"4711","amount":100,"currency":"EUR"}`))
		if err != nil {
			t.Fatal(err)
		}
		if r := w.Precondition(t.Context(), tool, tools.Sending{Params: params, Config: cfg}); !r.OK || !r.Met || string(r.Pin) != "1" {
			t.Errorf("%q: precondition %+v", fault, r)
		}
		if r := w.Preview(t.Context(), tool, tools.Sending{Params: params, Config: cfg}); !r.OK {
			t.Errorf("%q: preview %+v", fault, r)
		}
		f, err := tool.Freeze(params, cfg)
		if err != nil {
			t.Fatal(err)
		}
		s := tools.Sending{Key: "k1", Effect: "eff_1", Attempt: 1, SentAt: time.Now().Add(-time.Minute), Config: cfg, Params: params}
		sent := w.Send(t.Context(), tool, f, s)
		asked := w.Query(t.Context(), tool, f, s)
		all, err := ledger.Effects()
		if err != nil {
			t.Fatal(err)
		}
		if sent.Status != want.sent || len(all) != want.effects || asked.Happened != (want.effects == 1) || asked.DidNot != (want.effects == 0) {
			t.Errorf("%q: sent %s (%s), %d effects, asked %+v", fault, sent.Status, sent.Message, len(all), asked)
		}
		if asked.Happened && (asked.Outcome.Class != "" || asked.Outcome.ExternalRef == "") {
			t.Errorf("%q: %+v", fault, asked.Outcome)
		}
		if fault == "busy" && sent.RetryAfter != time.Second {
			t.Errorf("retry after %s", sent.RetryAfter)
		}
	}
}
