package browser

import (
	"testing"

	"countersign/internal/desk"
	"countersign/web/templates/parts"
)

func TestMoney_IsReadFromTheSmallestUnit(t *testing.T) {
	for _, c := range []struct{ text, currency, want string }{
		{"12500", "EUR", "125.00 EUR"}, {"5", "EUR", "0.05 EUR"}, {"0", "USD", "0.00 USD"}, {"-250", "EUR", "-2.50 EUR"}, {"-5", "EUR", "-0.05 EUR"},
		{"500", "JPY", "500 JPY"}, {"1", "KWD", "0.001 KWD"}, {"123456789012345678", "EUR", "1234567890123456.78 EUR"},
		{"1.5", "EUR", ""}, {"1e3", "EUR", ""}, {"", "EUR", ""}, {"a lot", "EUR", ""}, {"12500", "", ""}, {"12500", "eur", ""}, {"12500", "<b>", ""}, {"1234567890123456789", "EUR", ""},
	} {
		if got := money(c.text, c.currency); got != c.want {
			t.Errorf("money(%q, %q) = %q, want %q", c.text, c.currency, got, c.want)
		}
	}
}

func TestLabelled_FollowsTheSchemaAndLeavesOutWhatIsHidden(t *testing.T) {
	rows := labelled([]parts.Value{{Pointer: "/extra", Text: "1"}, {Pointer: "/fee", Masked: true, Text: "7"}, {Pointer: "/params/total", Text: "9900", Old: "12500"}},
		[]desk.Label{{Pointer: "/total", Title: "Total", Currency: "EUR"}, {Pointer: "/fee", Title: "Fee", Currency: "EUR"}})
	for i, want := range []struct{ pointer, title, reading, old string }{{"/params/total", "Total", "99.00 EUR", "125.00 EUR"}, {"/fee", "Fee", "", ""}, {"/extra", "", "", ""}} {
		if r := rows[i]; r.Pointer != want.pointer || r.Title != want.title || r.Reading != want.reading || r.OldReading != want.old {
			t.Errorf("row %d is %+v, want %+v", i, r, want)
		}
	}
}

// 30.00 is the whole number 30 to JSON; who types it into a field of cents
// means 3000.
func TestValue_AWholeNumberHasNoPoint(t *testing.T) {
	cents, price := desk.FormField{Pointer: "/amount", Type: "integer"}, desk.FormField{Type: "number"}
	for _, c := range []struct {
		field       desk.FormField
		typed, want string
	}{{cents, "3000", "3000"}, {cents, " -5 ", "-5"}, {cents, "30.00", `"30.00"`}, {cents, "3e3", `"3e3"`}, {cents, "much", `"much"`}, {price, "30.5", "30.5"}} {
		if got := value(c.field, c.typed); string(got) != c.want {
			t.Errorf("%q in a field of type %s is %s, want %s", c.typed, c.field.Type, got, c.want)
		}
	}
	const want = "write a whole number, without a decimal point"
	if got := schemaField(cents, "30.00", "must be an integer, not a string").Error; got != want {
		t.Errorf("the error is %q, want %q", got, want)
	}
}

func TestAct_TheButtonTakesAWordAlone(t *testing.T) {
	for summary, want := range map[string]string{"Refund 5.00 EUR": "Approve refund", "Note: hello": "Approve", "Überweise 5": "Approve überweise", "12 things": "Approve"} {
		if got := act(desk.Approval{Kind: "action", Summary: summary}, decisionForm{}).Approve; got != want {
			t.Errorf("%q is approved by %q, want %q", summary, got, want)
		}
	}
}
