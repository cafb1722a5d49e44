package canon_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"countersign/internal/canon"
)

// value draws decoded JSON.
func value(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		most := 5
		if depth == 0 {
			most = 3
		}
		switch rapid.IntRange(0, most).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return rapid.String().Draw(t, "text")
		case 3:
			return number(t)
		case 4:
			list := rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "list")
			return append([]any{}, list...)
		}
		return rapid.MapOfN(rapid.String(), value(depth-1), 0, 4).Draw(t, "object")
	})
}

// number draws any finite double, -0 left out since it has no text of its own.
func number(t *rapid.T) float64 {
	f := rapid.OneOf(
		rapid.Map(rapid.Uint64(), math.Float64frombits),
		rapid.Map(rapid.Int64Range(-1<<53, 1<<53), func(i int64) float64 { return float64(i) }),
		rapid.Float64(),
	).Draw(t, "number")
	if math.IsInf(f, 0) || math.IsNaN(f) || f == 0 {
		return 0
	}
	return f
}

func TestCanonical_IsIdempotentAndRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := value(3).Draw(t, "value")
		once, err := canon.Marshal(v)
		if err != nil {
			t.Fatalf("Marshal(%#v): %v", v, err)
		}
		twice, err := canon.Canonical(once, canon.Limits{})
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("Canonical(%s) = %s, %v; want it unchanged", once, twice, err)
		}
		back, err := canon.Value(once)
		if diff := cmp.Diff(v, back); err != nil || diff != "" {
			t.Fatalf("Value(Marshal(v)) differs: %v\n%s", err, diff)
		}
		if !json.Valid(once) {
			t.Fatalf("%s is not JSON", once)
		}
	})
}

// loose writes v with shuffled keys, white space, and needless escapes.
func loose(v any, r *rand.Rand, b *strings.Builder) {
	gap := func() { b.WriteString([]string{"", " ", "\n\t"}[r.Intn(3)]) }
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for k := range v {
			names = append(names, k)
		}
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		b.WriteString("{")
		for i, k := range names {
			if i > 0 {
				b.WriteString(",")
			}
			gap()
			loose(k, r, b)
			gap()
			b.WriteString(":")
			gap()
			loose(v[k], r, b)
		}
		b.WriteString("}")
	case []any:
		b.WriteString("[")
		for i, x := range v {
			if i > 0 {
				b.WriteString(",")
			}
			gap()
			loose(x, r, b)
		}
		gap()
		b.WriteString("]")
	default:
		raw, _ := json.Marshal(v) // HTML escapes, other number forms
		b.Write(raw)
	}
}

func TestCanonical_IgnoresKeyOrderSpaceAndEscapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := value(3).Draw(t, "value")
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		var a, b strings.Builder
		loose(v, r, &a)
		loose(v, r, &b)
		ca, errA := canon.Canonical([]byte(a.String()), canon.Limits{})
		cb, errB := canon.Canonical([]byte(b.String()), canon.Limits{})
		if errA != nil || errB != nil || !bytes.Equal(ca, cb) {
			t.Fatalf("%s → %s, %v\n%s → %s, %v", a.String(), ca, errA, b.String(), cb, errB)
		}
	})
}

func TestCanonical_NeverMakesTwoWholeNumbersOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := new(big.Int).Lsh(big.NewInt(rapid.Int64().Draw(t, "n")), uint(rapid.IntRange(0, 80).Draw(t, "shift")))
		n.Add(n, big.NewInt(rapid.Int64Range(-3, 3).Draw(t, "add")))
		got, err := canon.Canonical([]byte(n.String()), canon.Limits{})
		exact := new(big.Int).Abs(n).Cmp(big.NewInt(1<<53)) <= 0
		if err != nil {
			if exact {
				t.Fatalf("Canonical(%s): %v", n, err)
			}
			return
		}
		back, ok := new(big.Rat).SetString(string(got))
		if !ok || back.Cmp(new(big.Rat).SetInt(n)) != 0 {
			t.Fatalf("Canonical(%s) = %s, another number", n, got)
		}
	})
}

func FuzzCanonical(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add([]byte(v.input))
	}
	for _, s := range []string{`{"a":1,"a":1}`, `[1E400]`, `NaN`, `01`, `{"a":1,}`, `9007199254740993`, `"\ud800"`, `"\ud83d\ude00"`, "\"\xff\"", `-0`, `{"ﬀ":1,"😀":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		once, err := canon.Canonical(src, canon.Limits{})
		if err != nil {
			if strings.HasPrefix(code(err), "no problem") {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		if !json.Valid(src) {
			t.Fatalf("%q is accepted but not JSON", src)
		}
		twice, err := canon.Canonical(once, canon.Limits{Bytes: 1 << 30})
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q → %q → %q, %v", src, once, twice, err)
		}
		v, err := canon.Value(once)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := canon.Marshal(v); err != nil || !bytes.Equal(once, again) {
			t.Fatalf("%q decodes and marshals to %q, %v", once, again, err)
		}
	})
}

func FuzzPointer(f *testing.F) {
	f.Add("/a/b~1c/0")
	f.Add("/")
	f.Add("~")
	f.Fuzz(func(t *testing.T, pointer string) {
		tokens, ok := canon.Tokens(pointer)
		if ok && canon.Join("", tokens...) != pointer {
			t.Fatalf("Join(Tokens(%q)) = %q", pointer, canon.Join("", tokens...))
		}
	})
}
