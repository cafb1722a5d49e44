package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// tabsMax bounds how often Tab is pressed on the way to one control.
const tabsMax = 120

// focused is what has the focus, as a person would name it, and how its ring
// differs from the same element without focus.
type focused struct {
	Name    string
	ID      string
	Visible bool // it is on the screen, and looks different from when it has no focus
	Top     float64
}

// whoHasFocus tells the look of the focused element from the same element's
// look without focus. Nothing else is touched.
const whoHasFocus = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body) return {Name: '', ID: '', Visible: true, Top: 0};
	const look = () => { const s = getComputedStyle(e); return [s.outlineStyle !== 'none' ? s.outlineWidth + s.outlineColor : '', s.boxShadow].join('|'); };
	const r = e.getClientRects()[0] ?? e.getBoundingClientRect(), with_ = look(), style = e.style.transition;
	const shown = e.checkVisibility() && r.width > 0 && r.height > 0 && r.bottom > 0 && r.top < innerHeight && r.right > 0 && r.left < innerWidth;
	const hit = shown && document.elementFromPoint(Math.min(innerWidth - 1, Math.max(0, (r.left + r.right) / 2)), Math.min(innerHeight - 1, Math.max(0, (r.top + r.bottom) / 2)));
	const clear = hit && (e === hit || e.contains(hit) || hit.contains(e));
	e.blur();
	const without = look();
	e.focus({preventScroll: true});
	const name = (e.getAttribute('aria-label') || e.labels?.[0]?.textContent || e.textContent || e.name || e.tagName).trim().replace(/\s+/g, ' ');
	return {Name: name, ID: e.id, Visible: Boolean(clear) && with_ !== without, Top: r.top + scrollY};
})()`

// keys presses keys, one after the other.
func (b *tab) keys(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		b.do(fmt.Sprintf("press %q", k), chromedp.KeyEvent(k))
	}
}

// focus is what has the focus now; it must be seen to have it.
func (b *tab) focus() focused {
	b.t.Helper()
	f := evaluate[focused](b, whoHasFocus)
	if !f.Visible {
		b.shot("focus-unseen")
		b.t.Errorf("%s: nobody sees that %q has the focus", b.where(), f.Name)
	}
	return f
}

// tabTo presses Tab until what has the focus begins with the name, and
// returns the names on the way.
func (b *tab) tabTo(name string, how ...chromedp.KeyOption) (passed []string) {
	b.t.Helper()
	for range tabsMax {
		b.do("press Tab", chromedp.KeyEvent(kb.Tab, how...))
		f := b.focus()
		if strings.HasPrefix(strings.TrimPrefix(f.Name, "high risk: "), name) {
			return passed
		}
		passed = append(passed, f.Name)
	}
	b.shot("failed")
	b.t.Fatalf("%s: Tab never comes to %q; it came past %q", b.where(), name, passed)
	return nil
}

// before fails unless the names were passed in this order.
func before(t *testing.T, passed []string, names ...string) {
	t.Helper()
	rest := passed
	for _, name := range names {
		i := slices.IndexFunc(rest, func(s string) bool { return strings.HasPrefix(s, name) })
		if i < 0 {
			t.Errorf("Tab does not come past %q in its place; it came past %q", name, passed)
			return
		}
		rest = rest[i+1:]
	}
}

// Everything an approver does, with the keyboard alone: signing in, finding,
// reading, changing, approving in two steps, finding again, signing out. The
// focus is always seen, and controls come after the evidence.
func TestKeyboard_AWholeDecisionWithoutAPointer(t *testing.T) {
	w := open(t)
	run, approval := w.refund(t, "47180", 12500)
	who := w.with(t, "finance")
	b := w.browse(t, true)

	b.open("/inbox")
	b.tabTo("E-mail address")
	b.keys(who.Email)
	b.tabTo("Password")
	b.keys(who.Password, kb.Enter)
	b.says("Refund 125.00 EUR on order 47180")

	b.keys(kb.Tab)
	if f := b.focus(); f.Name != "Skip to the content" {
		t.Errorf("the first Tab leads to %q, want the link that skips to the content", f.Name)
	}
	b.keys(kb.Enter)
	if got := evaluate[string](b, "document.activeElement.id"); got != "main" {
		t.Errorf("skipping leads to %q, want main", got)
	}
	if passed := b.tabTo("Refund 125.00 EUR on order 47180"); slices.Contains(passed, "For me") {
		t.Errorf("after skipping, Tab comes past the rail: %q", passed)
	}
	b.keys(kb.Enter)
	b.see("#act")
	if got := b.where(); !strings.HasPrefix(got, "/approvals/"+approval) {
		t.Fatalf("Enter on the row leads to %s", got)
	}

	passed := b.tabTo("Approve refund…")
	before(t, passed, "Skip to the content", "Countersign", "For me", "shop.refund 1", "The request as it will be sent", "Why the other rules")
	b.tabTo("Reject refund…")
	b.keys(kb.Enter) // opens the panel, decides nothing
	b.see("#reject[open]")
	b.do("back to the summary", chromedp.KeyEvent(" "))
	b.eventually("the panel closed again", func() bool { return evaluate[bool](b, `!document.querySelector('#reject').open`) })
	b.tabTo("Edit…")
	b.keys(kb.Enter)
	b.see(`button[value="check"]`)

	b.tabTo("Amount")
	b.do("select what stands there", chromedp.KeyEvent("a", chromedp.KeyModifiers(2)))
	b.keys("9000")
	passed = b.tabTo("Check the changes")
	before(t, passed, "Note to the customer", "Why the change")
	b.keys(kb.Enter)
	b.see(`button[value="save"]`)
	b.says("90.00 EUR")
	b.tabTo("Save as revision 2")
	b.keys(" ")
	b.says("Saved as revision 2")
	if over := evaluate[float64](b, "document.documentElement.scrollHeight - innerHeight"); over > 0 {
		t.Errorf("the whole frame can be moved by %.0f pixels, by whatever takes the focus", over)
	}

	b.tabTo("Approve refund…")
	b.keys(kb.Enter)
	b.see("#confirm-button:not(:disabled)")
	if got := evaluate[string](b, "document.activeElement.id"); got != "confirm-title" {
		t.Errorf("armed, the focus is on %q, want on the question", got)
	}
	b.tabTo("Not yet")
	b.keys(kb.Enter) // disarms
	b.see("#choose:not([hidden])")
	if got := evaluate[string](b, "document.activeElement.id"); got != "choose" {
		t.Errorf("disarmed, the focus is on %q, want before the buttons and on none of them", got)
	}
	b.tabTo("Approve refund…")
	b.keys(kb.Enter)
	b.see("#confirm-button:not(:disabled)")
	b.tabTo("Not yet")
	b.tabTo("Approve refund")
	b.keys(" ")
	w.until(t, run, "completed")
	b.says("Done, once")

	b.open("/approvals/" + approval)
	b.tabTo("My decisions")
	b.keys(kb.Enter)
	b.says("Refund 90.00 EUR on order 47180")
	b.tabTo("Refund 90.00 EUR on order 47180")
	b.keys(kb.Enter)
	b.says("Done, once")
	if n := w.refunds(t, "47180"); n != 1 {
		t.Errorf("%d refunds happened, want 1", n)
	}

	b.tabTo(nameOf(w, who))
	b.keys(kb.Enter)
	b.see(`form[action="/signout"]`)
	b.tabTo("Sign out")
	b.keys(kb.Enter)
	b.see(`input[name="password"]`)
	b.open("/inbox")
	if got := b.where(); !strings.HasPrefix(got, "/signin") {
		t.Errorf("after signing out the inbox leads to %s, want to signing in", got)
	}
}

// nameOf is how the bar names somebody of the demo.
func nameOf(w *world, a account) string {
	names := map[string]string{"ana@demo.example": "Ana", "ben@demo.example": "Ben"}
	return names[a.Email]
}
