package demo

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"countersign/internal/desk"
	"countersign/internal/engine"

	"github.com/google/go-cmp/cmp"
)

func TestDemo_TheAgentStopsAskingWhenEnoughWaits(t *testing.T) {
	t.Parallel()
	d, stop := open(t, t.TempDir())
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.Agent(ctx) }()
	eventually(t, "as many wait as may", func() bool {
		n, err := d.pending(t.Context())
		return err == nil && n == pendingMax
	})
	cancel()
	<-done
	for _, s := range stories(t, d) {
		if strings.HasSuffix(s, engine.Failed) {
			t.Errorf("an errand cannot work: %s", s)
		}
	}
}

func TestDemo_EveryErrandFitsItsToolAndIsTheSameAgain(t *testing.T) {
	t.Parallel()
	d, stop := open(t, t.TempDir())
	defer stop()
	for n := range 3 * len(ideas) {
		e, err := d.errand(n)
		if err != nil {
			t.Fatal(err)
		}
		again, err := d.errand(n)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, again, cmp.AllowUnexported(errand{})); diff != "" {
			t.Error(diff)
		}
		if e.tool == "" {
			e.tool = map[string]string{"refund": "shop.refund", "restart-service": "ops.restart"}[e.workflow]
			if e.tool == "" {
				continue
			}
			delete(e.input, "why")
			e.params = e.input
			if e.workflow == "refund" {
				e.params["currency"] = "EUR"
			}
		}
		params, err := json.Marshal(e.params)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Instance.Desk.Explain(t.Context(), d.cast.agent, desk.Explain{Tool: e.tool, Params: params}); err != nil {
			t.Errorf("errand %d: %v", n, err)
		}
	}
}
