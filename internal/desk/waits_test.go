package desk_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"countersign/internal/engine"
)

// A token has so many calls open and no more; another's are its own matter,
// and reading without waiting is always possible.
func TestAPI_WaitingReads_AreLimitedByToken(t *testing.T) {
	t.Parallel()
	const most = 16
	w := newWorld(t)
	run := w.refund(12_500, engine.WaitingApproval)
	base := w.serve()
	greedy, other := caller{t, base, w.token("dev", false, "runs:read")}, caller{t, base, w.token("dev", false, "runs:read")}
	path := fmt.Sprintf("/api/v1/runs/%s?wait=60s&after=%d", run.ID, run.Version+1_000_000)

	ctx, hangUp := context.WithCancel(t.Context())
	var open sync.WaitGroup
	defer open.Wait()
	defer hangUp()
	for range most {
		open.Go(func() {
			req, err := http.NewRequestWithContext(ctx, "GET", base+path, nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Authorization", "Bearer "+greedy.token)
			if res, err := http.DefaultClient.Do(req); err == nil { // it ends by being hung up
				res.Body.Close()
				t.Errorf("a waiting read ended with %d", res.StatusCode)
			}
		})
	}
	w.eventually(func() (bool, string) {
		n := w.inst.Hub.Listening()
		return n == most, fmt.Sprintf("%d calls wait, want %d", n, most)
	})
	for _, waiting := range []string{path, "/api/v1/events"} {
		refused := greedy.send("GET", waiting, "")
		greedy.wantProblem(http.StatusTooManyRequests, "too_many_waits", refused)
		if refused.header.Get("Retry-After") == "" {
			t.Errorf("%s is refused without Retry-After", waiting)
		}
	}
	greedy.must(200, greedy.send("GET", "/api/v1/runs/"+string(run.ID), ""))
	other.must(200, other.send("GET", fmt.Sprintf("/api/v1/runs/%s?wait=1ms&after=%d", run.ID, run.Version), ""))

	hangUp()
	open.Wait()
	w.eventually(func() (bool, string) {
		a := greedy.send("GET", fmt.Sprintf("/api/v1/runs/%s?wait=1ms&after=%d", run.ID, run.Version), "")
		return a.status == 200, "after hanging up: " + a.raw
	})
}
