package canon

import (
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"countersign/internal/problem"
)

// exactMax is 2^53: up to here every integer is a double of its own.
const exactMax = 1 << 53

// checkNumber refuses a number that would become another one. A double must be
// able to hold it (1E400 overflows, 1E-400 would become 0), and from 2^53 on
// its RFC 8785 form must denote the very number that was written: then two
// numbers that differ never share a canonical form, and that form reads back as
// itself. 9007199254740992 and 1e21 pass; 9007199254740993 does not. Fractions
// below that take the nearest double, as RFC 8785 says.
func checkNumber(text string, at jsontext.Pointer) error {
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsInf(f, 0):
		return badNumber(text, at, "number_out_of_range", "is larger than a JSON number can hold here; send it as a string")
	case f == 0 && !zero(text):
		return badNumber(text, at, "number_out_of_range", "is too close to zero for a JSON number here; send it as a string")
	case math.Abs(f) >= exactMax && !sameNumber(text, Number(f)):
		return badNumber(text, at, "unsafe_integer", "is outside the range in which numbers are exact (±9007199254740992); send it as a string")
	}
	return nil
}

func badNumber(text string, at jsontext.Pointer, code, what string) error {
	if len(text) > 40 {
		text = text[:40] + "…"
	}
	return problem.New(problem.Invalid, code, "The number %s %s.", text, what).At(short(at), "%s %s", text, what)
}

// Number writes a finite double in the RFC 8785 form (ECMAScript's shortest
// text that reads back as the same double); negative zero is 0.
func Number(f float64) string {
	if f == 0 {
		return "0"
	}
	return jsontext.Float(f).String()
}

// zero reports whether a JSON number is written with no digit but 0.
func zero(text string) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	return strings.Trim(mantissa, "-0.") == ""
}

// sameNumber compares two JSON numbers by value, in time linear in the text.
func sameNumber(a, b string) bool {
	na, da, ea, oka := decimal(a)
	nb, db, eb, okb := decimal(b)
	return oka && okb && na == nb && da == db && ea == eb
}

// decimal splits a JSON number other than zero into sign, digits without
// leading or trailing zeros, and the power of ten of the last digit.
func decimal(text string) (negative bool, digits string, exp int, ok bool) {
	text, negative = strings.CutPrefix(strings.ToLower(text), "-")
	mantissa, power, has := strings.Cut(text, "e")
	if has {
		n, err := strconv.Atoi(power)
		if err != nil {
			return false, "", 0, false
		}
		exp = n
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	exp -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	return negative, trimmed, exp + len(digits) - len(trimmed), true
}
