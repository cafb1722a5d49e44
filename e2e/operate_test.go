package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ledger is what really happened, as the stand-ins wrote it.
func (w *world) ledger(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.Data, "stand-ins", "ledger.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(string(raw), "\n")
}

// An operator finds what is stuck, says what happened, and the run goes on.
func TestJourney_SettleAnUnknownOutcome(t *testing.T) {
	w := open(t)
	b := w.browse(t, true)
	b.signIn(w.with(t, "operator"), "/attention")
	b.eventually("an unknown outcome", func() bool {
		if strings.Contains(b.text(), "Outcome unknown") {
			return true
		}
		time.Sleep(500 * time.Millisecond)
		b.open("/attention")
		return false
	})
	b.click(`main a[href^="/effects/"]`)
	b.says("Nobody knows whether it happened")
	b.click(`input[value="happened"]`)
	b.click(`form[action$="/resolve"] .act-bar button`)
	b.see(".field-error")
	b.fill(`textarea[name="evidence"]`, "The service log shows the restart at the minute it was sent.")
	b.click(`input[value="happened"]`)
	b.click(`form[action$="/resolve"] .act-bar button`)
	b.says("The service log shows the restart")
}

func TestJourney_VerifyTheLog(t *testing.T) {
	w := open(t)
	b := w.browse(t, true)
	b.signIn(w.with(t, "auditor"), "/audit")
	b.click(`form[action="/audit/verify"] button`)
	b.says("The log verifies")
}

// Every page in both colour schemes, at a desk and on a phone, without a word
// on the console; the pictures are for people to look at.
func TestPages_InBothSchemesAtBothWidths(t *testing.T) {
	w := open(t)
	done, agreed := w.refund(t, "47161", 12500)
	run, approval := w.refund(t, "47160", 75000)
	b := w.browse(t, true)
	b.pictures("", "/signin", "")
	b.signIn(w.with(t, "finance"), "/approvals/"+agreed)
	b.click("#arm")
	b.see("#confirm-button:not(:disabled)")
	b.click("#confirm-button")
	w.until(t, done, "completed")
	arm := "/approvals/" + approval + "?arm=" + b.digestOf(approval)
	for name, path := range map[string]string{"inbox": "/inbox", "waiting": "/waiting", "decisions": "/decisions", "approvals": "/approvals", "approval": "/approvals/" + approval, "armed": arm,
		"edit": "/approvals/" + approval + "/edit", "executed": "/approvals/" + agreed, "runs": "/runs", "run": "/runs/" + run, "run-done": "/runs/" + done, "checkpoint": "/runs/" + done + "/checkpoints/2",
		"attention": "/attention", "definitions": "/definitions", "workflow": "/definitions/workflow/refund/1", "tool": "/definitions/tool/shop.refund/1", "policy": "/definitions/policy/default/1",
		"explain": "/definitions/explain", "account": "/account", "keys": "/help/keys", "not-found": "/nothing-here"} {
		b.pictures(name, path, "")
	}
	b.eventually("an unknown outcome", func() bool {
		b.open("/attention")
		return strings.Contains(b.text(), "Outcome unknown")
	})
	b.pictures("effect", "/attention", `main a.button[href^="/effects/"]`)
	b = w.browse(t, true)
	b.signIn(w.with(t, "auditor"), "/")
	b.pictures("audit", "/audit", "")
	b.pictures("entry", "/audit", `main a[href^="/audit/entries/"]`)
	b.pictures("people", "/people", "")
	b = w.browse(t, true)
	b.signIn(w.with(t, "builder"), "/")
	b.pictures("start", "/runs/new", "")
	b.pictures("start-refund", "/runs/new?workflow=refund", "")
}

// pictures takes a page, or what a link on it leads to, in both schemes at
// both widths; it must fit.
func (b *tab) pictures(name, path, link string) {
	b.t.Helper()
	if name == "" {
		name = strings.TrimPrefix(path, "/")
	}
	for width, height := range map[int64]int64{1440: 900, 390: 844} {
		b.size(width, height)
		b.open(path)
		if link != "" {
			b.click(link)
			b.eventually("the page behind "+link, func() bool { return b.where() != path })
		}
		b.see("main h1")
		b.fits(path, width)
		for _, scheme := range []string{"light", "dark"} {
			b.theme(scheme)
			b.shot(fmt.Sprintf("%s-%d-%s", name, width, scheme))
		}
	}
}

// digestOf is the digest that a request's page says it is about.
func (b *tab) digestOf(approval string) string {
	b.t.Helper()
	b.open("/approvals/" + approval)
	b.see("#act")
	return b.digest()
}
