package e2e_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// barMax is how much of a phone's height the decision may keep, in CSS pixels.
const barMax = 72

// On a phone the buttons that decide stand in one low row, and the sentence
// above them is there for screen readers and in the confirm step.
func TestPhone_TheDecisionTakesOneRow(t *testing.T) {
	w := open(t)
	_, approval := w.refund(t, "47170", 75000)
	b := w.browse(t, true)
	b.signIn(w.with(t, "finance"), "/approvals/"+approval)
	b.size(390, 844)
	b.see("#arm")
	b.shot("bar-390")
	if h := evaluate[float64](b, `document.querySelector('#act').getBoundingClientRect().height`); h > barMax {
		t.Errorf("the decision bar is %.0f pixels high, want at most %d", h, barMax)
	}
	if n := evaluate[int](b, `new Set([...document.querySelectorAll('#choose button, #choose summary, #choose a.button')].filter(x => x.checkVisibility() && !x.closest('.panel')).map(x => Math.round(x.getBoundingClientRect().top))).size`); n != 1 {
		t.Errorf("the buttons stand in %d rows, want 1", n)
	}
	b.click("#arm")
	b.see("#confirm-button:not(:disabled)")
	if !evaluate[bool](b, `document.querySelector('#confirm .soft').checkVisibility()`) {
		t.Error("the confirm step does not say what is decided")
	}
	b.shot("armed-390")
}

// evaluate runs a script in the page.
func evaluate[T any](b *tab, script string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	if err != nil {
		b.t.Fatal(fmt.Errorf("%s: %w", script, err))
	}
	return v
}
