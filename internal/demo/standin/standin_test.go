package standin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"countersign/internal/demo/standin"
)

func serve(t *testing.T) (*standin.Server, *standin.Ledger, string, string) {
	t.Helper()
	dir := t.TempDir()
	l, err := standin.OpenLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := standin.NewServer(l, "secret")
	h := httptest.NewServer(s.Handler())
	t.Cleanup(h.Close)
	return s, l, h.URL, dir
}

func refund(t *testing.T, url, key string, amount int) (int, map[string]any, error) {
	t.Helper()
	body := fmt.Sprintf(`{"order_id":"4711","amount":%d,"currency":"EUR","note":""}`, amount)
	req, _ := http.NewRequest("POST", url+"/shop/refunds", strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer secret")
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	var out map[string]any
	_ = json.NewDecoder(res.Body).Decode(&out)
	return res.StatusCode, out, nil
}

func effects(t *testing.T, l *standin.Ledger, kind string) int {
	t.Helper()
	all, err := l.Effects()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range all {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func TestRefund_SameKeyIsOneEffect(t *testing.T) {
	_, l, url, _ := serve(t)
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			if status, _, err := refund(t, url, "k1", 500); err != nil || status != 201 {
				t.Errorf("refund: status %d, err %v; want 201", status, err)
			}
		})
	}
	wait.Wait()
	if got := effects(t, l, "refund"); got != 1 {
		t.Errorf("%d refunds happened, want 1", got)
	}
	if status, body, _ := refund(t, url, "k1", 501); status != 422 {
		t.Errorf("another amount under the key: %d %v, want 422", status, body)
	}
}

func TestRefund_ALostAnswerStillHappened(t *testing.T) {
	s, l, url, _ := serve(t)
	s.Break("refund", "lose_answer", "error_after", "busy")
	if _, _, err := refund(t, url, "k1", 500); err == nil {
		t.Error("the answer arrived though it was to be lost")
	}
	if status, _, _ := refund(t, url, "k2", 500); status != 500 {
		t.Errorf("status %d, want 500 after the work was done", status)
	}
	if status, _, _ := refund(t, url, "k3", 500); status != 503 {
		t.Errorf("status %d, want 503", status)
	}
	if got := effects(t, l, "refund"); got != 2 {
		t.Errorf("%d refunds happened, want 2", got)
	}
}

func TestOrder_ChangesWithItsRefundsAndState(t *testing.T) {
	_, _, url, _ := serve(t)
	get := func() standin.Order {
		res, err := http.Get(url + "/shop/orders/4711")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var o standin.Order
		if err := json.NewDecoder(res.Body).Decode(&o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	before := get()
	if status, _, _ := refund(t, url, "k1", 500); status != 201 {
		t.Fatalf("refund: %d", status)
	}
	after := get()
	if after.Version != before.Version+1 || after.Refundable != before.Refundable-500 {
		t.Errorf("order after a refund = %+v, before %+v", after, before)
	}
	res, err := http.Post(url+"/shop/orders/4711/state", "application/json", bytes.NewReader([]byte(`{"state":"disputed"}`)))
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("change: %v %v", res, err)
	}
	res.Body.Close()
	if got := get(); got.State != "disputed" || got.Version != after.Version+1 {
		t.Errorf("order = %+v, want disputed and a new version", got)
	}
	if status, _, _ := refund(t, url, "k2", 500); status != 409 {
		t.Errorf("refund of a disputed order: %d, want 409", status)
	}
}

func TestLedger_ATornLineDidNotHappen(t *testing.T) {
	_, l, url, dir := serve(t)
	if status, _, _ := refund(t, url, "k1", 500); status != 201 {
		t.Fatalf("refund: %d", status)
	}
	f, err := os.OpenFile(filepath.Join(dir, "ledger.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"kind":"refund","id":"re_`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if got := effects(t, l, "refund"); got != 1 {
		t.Errorf("%d refunds, want 1: the torn line is not one", got)
	}
	if status, _, _ := refund(t, url, "k2", 500); status != 201 {
		t.Fatalf("refund after the torn line: %d", status)
	}
	if got := effects(t, l, "refund"); got != 2 {
		t.Errorf("%d refunds, want 2: what follows a torn line is kept", got)
	}
}

func TestDraft_IsTheSameForTheSameDocuments(t *testing.T) {
	_, _, url, _ := serve(t)
	draft := func() string {
		res, err := http.Post(url+"/planner/draft", "application/json", strings.NewReader(
			`{"week":"2026-W48","documents":[{"path":"incident-1.md","title":"Search","text":"# Search\n\nThe disk was full. We added one."},{"path":"a.md","title":"","text":"- x"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var out struct{ Markdown string }
		if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
			t.Fatal(err)
		}
		return out.Markdown
	}
	first := draft()
	if first != draft() || !strings.Contains(first, "## Incident") || !strings.Contains(first, "The disk was full. (`incident-1.md`)") {
		t.Errorf("draft = %q", first)
	}
}

func TestRestart_UnknownServiceDoesNothing(t *testing.T) {
	_, l, _, _ := serve(t)
	if _, err := l.Restart("payroll", 0, "k"); err == nil {
		t.Error("restarting an unknown service succeeded")
	}
	if _, err := l.Restart("search", 0, "k"); err != nil {
		t.Error(err)
	}
	if got := effects(t, l, "restart"); got != 1 {
		t.Errorf("%d restarts, want 1", got)
	}
}
