package e2e_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A person reads a refund, changes the amount, sees what the policy makes of
// it, approves exactly that, watches it happen, and finds it again.
func TestJourney_EditApproveAndWatch(t *testing.T) {
	for _, script := range []bool{true, false} {
		name := map[bool]string{true: "with script", false: "without script"}[script]
		t.Run(name, func(t *testing.T) {
			w := open(t)
			run, approval := w.refund(t, "47110", 12500)
			b := w.browse(t, script)
			b.signIn(w.with(t, "finance"), "/approvals/"+approval)
			if got := b.where(); got != "/approvals/"+approval {
				t.Fatalf("after signing in at %s, want back at the request", got)
			}
			b.says("Refund 125.00")
			b.says("Written by")
			before := b.digest()

			b.click("#edit")
			b.fill(`input[name="/amount"]`, "-5")
			b.click(`button[value="check"]`)
			b.says("Amount")
			b.see(".field-error")
			if b.value(`input[name="/amount"]`) != "-5" {
				t.Error("what was typed is gone after a refusal")
			}
			b.fill(`input[name="/amount"]`, "9000")
			b.click(`button[value="check"]`)
			b.see(`button[value="save"]`)
			b.says("finance")
			b.click(`button[value="save"]`)
			b.says("Saved as revision 2")
			after := b.digest()
			if after == before || after == "" {
				t.Fatalf("digest after the edit %q, before %q; want another", after, before)
			}

			b.click("#arm")
			b.see("#confirm-button:not(:disabled)")
			b.click("#confirm-button")
			w.until(t, run, "completed")
			b.open("/approvals/" + approval)
			b.says("Done, once")

			b.open("/decisions")
			b.says("Refund 90.00")
			if n := w.refunds(t, "47110"); n != 1 {
				t.Errorf("%d refunds happened, want 1", n)
			}
		})
	}
}

// The page changes by itself while somebody watches.
func TestJourney_ThePageFollowsWhatHappens(t *testing.T) {
	w := open(t)
	run, approval := w.refund(t, "47120", 30000)
	b := w.browse(t, true)
	b.signIn(w.with(t, "finance"), "/approvals/"+approval)
	b.click("#arm")
	b.see("#confirm-button:not(:disabled)")
	b.click("#confirm-button")
	b.says("Done, once") // without reloading
	w.until(t, run, "completed")
}

func TestJourney_RejectNeedsAReasonAndKeepsIt(t *testing.T) {
	w := open(t)
	run, approval := w.refund(t, "47130", 30000)
	b := w.browse(t, true)
	b.signIn(w.with(t, "finance"), "/approvals/"+approval)
	b.click("#reject summary")
	b.see("#reject button.danger")
	b.click("#reject button.danger")
	b.says("reason")
	b.fill(`#reject textarea`, "The photos show another parcel.")
	b.click("#reject button.danger")
	b.says("Rejected")
	b.says("The photos show another parcel.")
	w.until(t, run, "rejected")
	if n := w.refunds(t, "47130"); n != 0 {
		t.Errorf("%d refunds happened, want none", n)
	}
}

// Two tabs: the second decision comes back with who was first, and the text
// is kept.
func TestJourney_ASecondDecisionIsToldWhoWasFirst(t *testing.T) {
	w := open(t)
	_, approval := w.refund(t, "47140", 30000)
	first, second := w.browse(t, true), w.browse(t, false)
	first.signIn(account{Email: "ana@demo.example", Password: "countersign demo"}, "/approvals/"+approval)
	second.signIn(account{Email: "ben@demo.example", Password: "countersign demo"}, "/approvals/"+approval)
	second.click("#reject summary")
	second.fill("#reject textarea", "Too much for a scratch.")
	first.click("#arm")
	first.see("#confirm-button:not(:disabled)")
	first.click("#confirm-button")
	first.says("Done, once")
	second.click("#reject button.danger")
	second.says("Ana Lindqvist")
	second.eventually("the text that was typed", func() bool { return strings.Contains(second.html(), "Too much for a scratch.") })
	if n := w.refunds(t, "47140"); n != 1 {
		t.Errorf("%d refunds happened, want 1", n)
	}
}

// Keys decide nothing by themselves.
func TestJourney_KeysNeverDecide(t *testing.T) {
	w := open(t)
	run, approval := w.refund(t, "47150", 30000)
	b := w.browse(t, true)
	b.signIn(w.with(t, "finance"), "/approvals/"+approval)
	for _, key := range []string{"\r", " ", "y", "a", "\r"} {
		b.do("press a key", chromedp.KeyEvent(key))
	}
	b.do("disarm", chromedp.KeyEvent(kb.Escape))
	b.do("focus the reason", chromedp.Click(chromedp.CSS("#reject summary")))
	b.do("Enter in the reason", chromedp.SendKeys(chromedp.CSS("#reject textarea"), "no\r"))
	var r struct{ Status string }
	w.api(t, "GET", "/runs/"+run, nil, &r)
	if r.Status != "waiting_approval" {
		t.Errorf("after keys alone the run is %s, want waiting_approval", r.Status)
	}
}

// digest is the digest that the page says it is about.
func (b *tab) digest() string {
	b.t.Helper()
	s, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.querySelector("#act")?.dataset.digest ?? ""`))
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *tab) value(css string) string {
	b.t.Helper()
	s, err := chromedp.Run(b.ctx, chromedp.Value(chromedp.CSS(css)))
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// refunds counts what really happened to an order, at the shop.
func (w *world) refunds(t *testing.T, order string) int {
	t.Helper()
	n := 0
	for _, line := range w.ledger(t) {
		if strings.Contains(line, `"kind":"refund"`) && strings.Contains(line, `"order_id":"`+order+`"`) {
			n++
		}
	}
	return n
}
