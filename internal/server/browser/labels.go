package browser

import (
	"regexp"
	"slices"
	"strings"

	"countersign/internal/desk"
	"countersign/web/templates/parts"
)

// labelled names rows as the schema does and puts them in its order. Rows it
// does not know stay as they are, at the end.
func labelled(rows []parts.Value, labels []desk.Label) []parts.Value {
	place := func(r parts.Value) int {
		i := slices.IndexFunc(labels, func(l desk.Label) bool {
			return l.Pointer == strings.TrimPrefix(r.Pointer, "/params") || l.Pointer == r.Pointer
		})
		if i < 0 {
			return len(labels)
		}
		return i
	}
	slices.SortStableFunc(rows, func(a, b parts.Value) int { return place(a) - place(b) })
	for i, r := range rows {
		at := place(r)
		if at == len(labels) {
			continue
		}
		l := labels[at]
		rows[i].Title, rows[i].Hint = l.Title, l.Hint
		if !r.Masked {
			rows[i].Reading, rows[i].OldReading = money(r.Text, l.Currency), money(r.Old, l.Currency)
		}
	}
	return rows
}

var (
	wholeNumber  = regexp.MustCompile(`^-?[0-9]{1,18}$`)
	currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)
)

// minorDigits are the currencies whose smallest unit is not a hundredth
// (ISO 4217, table A.1).
var minorDigits = map[string]int{"BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0, "RWF": 0, "UGX": 0, "UYI": 0, "VND": 0, "VUV": 0,
	"XAF": 0, "XOF": 0, "XPF": 0, "BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3, "CLF": 4, "UYW": 4}

// money is a whole number of a currency's smallest unit as people write it,
// "125.00 EUR"; empty for anything else.
func money(text, currency string) string {
	if !wholeNumber.MatchString(text) || !currencyCode.MatchString(currency) {
		return ""
	}
	digits, known := minorDigits[currency]
	if !known {
		digits = 2
	}
	sign, number := "", text
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		sign, number = "-", rest
	}
	if short := digits + 1 - len(number); short > 0 {
		number = strings.Repeat("0", short) + number
	}
	if digits == 0 {
		return sign + number + " " + currency
	}
	cut := len(number) - digits
	return sign + number[:cut] + "." + number[cut:] + " " + currency
}

// reading says what a whole number of a currency's smallest unit means. It
// names the number, so that it stays true while somebody types another.
func reading(value, pointer string, labels []desk.Label) string {
	for _, l := range labels {
		if m := money(value, l.Currency); l.Pointer == pointer && m != "" {
			return value + " is " + m
		}
	}
	return ""
}
