package e2e_test

import (
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
	run, approval := w.refund(t, "47160", 75000)
	people := map[string][]string{
		"finance": {"/inbox", "/waiting", "/decisions", "/approvals", "/approvals/" + approval, "/approvals/" + approval + "/edit", "/runs", "/runs/" + run, "/attention", "/definitions",
			"/definitions/workflow/refund/1", "/definitions/explain", "/account", "/help/keys", "/nothing-here"},
		"auditor": {"/audit", "/people"},
	}
	for role, paths := range people {
		b := w.browse(t, true)
		b.signIn(w.with(t, role), "/")
		for _, path := range paths {
			name := strings.NewReplacer("/", "-", approval, "ID", run, "ID").Replace(strings.TrimPrefix(path, "/"))
			for _, scheme := range []string{"light", "dark"} {
				b.theme(scheme)
				for width, height := range map[int64]int64{1440: 900, 390: 844} {
					b.size(width, height)
					b.open(path)
					b.see("main h1")
					b.fits(path, width)
					b.shot(name + map[int64]string{1440: "-1440-", 390: "-390-"}[width] + scheme)
				}
			}
		}
	}
}
