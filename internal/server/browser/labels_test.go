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
